// What a reward scores: the responses to one prompt, and once what they share. The reward role is
// sent it; reward sources are given it. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

struct RewardSample {
  std::string response;                   // text of the sampled tokens, special ones left out
  std::vector<std::int32_t> tokens = {};  // sampled ids, where the reward reads them
};

struct RewardGroup {
  std::string prompt;    // as the model saw it
  std::string label{};     // the dataset's label column, "" when there is none
  std::string columns{};   // the dataset row as one JSON object, at least the columns that are read
  std::string messages{};  // the prompt as a JSON list of messages; "" where the dataset has a text
  std::uint64_t update = 0;  // of the run, counted from 0
  std::vector<RewardSample> samples{};
};

inline std::size_t samples_in(const std::vector<RewardGroup>& groups) {
  std::size_t count = 0;
  for (const RewardGroup& group : groups)
    count += group.samples.size();
  return count;
}

}  // namespace troupe::actors
