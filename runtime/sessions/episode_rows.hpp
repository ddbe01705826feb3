// The samples of an episode, made of the calls of its session: one for each leaf of the tree, in
// the shape that a run learns from (docs/adr/0033-episodes.md). Pure functions.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/experience/group.hpp"
#include "runtime/sessions/session_tree.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::sessions {

// What the rewards of an episode come to.
struct EpisodeRewards {
  std::optional<double> score{};  // of the whole
  // Whether rewards of turns are learned from at their turns. Else they are added up along the path
  // of each leaf, and the sum is the score where there is none.
  bool by_turn = false;
};

// One sample for each leaf, in order. The context of a sample's first turn is all of its prompt:
// `take_prompt` divides it. `episode`: its number in the group, from 1; `first`: the index that its
// first sample gets there.
std::vector<experience::Trajectory> samples_of(const SessionTree& tree,
                                               std::uint32_t episode,
                                               std::size_t first,
                                               const EpisodeRewards& rewards);

// Takes from the samples of a group what all of their rows begin with, and returns it. Error kData:
// their rows have no common beginning.
core::Result<std::vector<std::int32_t>> take_prompt(std::vector<experience::Trajectory>& samples);

}  // namespace troupe::sessions
