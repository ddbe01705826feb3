// What the tests of the data role share: samples, scores and reward sets in few words.
#pragma once

#include "actors/data/ticket_book.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::test {

using Values = std::vector<std::optional<double>>;

inline std::vector<experience::Trajectory> samples(int count,
                                                   experience::VersionRuns versions = {0, 0}) {
  std::vector<experience::Trajectory> result(static_cast<std::size_t>(count));
  for (auto& sample : result) {
    sample.tokens.assign(versions.size(), 1);
    sample.behaviour.assign(versions.size(), -0.5f);
    sample.versions = versions;
  }
  return result;
}

inline Values all(int count, double value) {
  return Values(static_cast<std::size_t>(count), value);
}

inline data::RewardSetPtr make_set(std::uint64_t number,
                                   std::vector<RewardMember> members,
                                   std::uint64_t from_update = 0) {
  return std::make_shared<const data::RewardSet>(
      data::RewardSet{number, from_update, std::move(members)});
}

inline data::RewardSetPtr one_reward() {
  return make_set(0, {{"reward", "reward/0", 1}});
}

inline SetRewards change(std::uint64_t number,
                         std::uint64_t from_update,
                         std::vector<RewardMember> members,
                         std::vector<std::string> lost = {}) {
  return {number, from_update, std::move(members), std::move(lost)};
}

}  // namespace troupe::actors::test
