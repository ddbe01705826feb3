// Puts the scores of a response's steps at its tokens. Pure functions.
#pragma once

#include "actors/protocol/reward_group.hpp"
#include "runtime/experience/group.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::actors::data {

// Each step's score at the token that completes the step's text: the first after which the text is
// as long as `end`, or the last token. `ends`: for each token, the bytes of text that it and those
// before it decode to; not empty, ascending. Steps of one token are added. Ascending by token.
std::vector<experience::StepReward> at_tokens(std::span<const StepScore> steps,
                                              std::span<const std::uint32_t> ends);

// The rewards of several rewards' steps, in the order of the lists, added by token. `weights`: one
// for each list; a list of weight 0 is left out.
std::vector<experience::StepReward> weighed_steps(
    std::span<const std::vector<experience::StepReward>> lists, std::span<const double> weights);

}  // namespace troupe::actors::data
