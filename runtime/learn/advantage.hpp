// From the scores of an update's samples to one advantage each, in a fixed order
// (docs/algorithms.md, "From scores to advantages"): clip every score, group step over the samples
// of a prompt, whitening over the whole update where the estimator asks for it. Plain C++ on
// doubles; sums run in the order of the arguments, so equal inputs give equal bits. Stateless; safe
// on any thread.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/learn/experience.hpp"
#include "runtime/learn/settings.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::learn {

// Added to the deviation of `grpo`. Peers that use 1e-9 turn rounding noise into advantages.
inline constexpr double kGrpoStdFloor = 1e-4;
// Smallest variance that whitening divides by.
inline constexpr double kWhitenVarianceMin = 1e-8;

// "update 3, slot 5": how errors name a group.
std::string ticket_name(const core::Ticket& ticket);

// The group step alone, over the scores R_1..R_n of one prompt, n >= 2:
//   kGrpo               (R_i - mean) / (std_{n-1} + 1e-4)
//   kDrGrpo             R_i - mean
//   kRloo               R_i - mean of the other n - 1
//   kReinforceBaseline  R_i - mean (whitened later, over the update)
// All exactly 0 when max = min. Errors, with `group` in the message: kInvalidArgument (fewer than
// two samples), kNumeric (a score that is not finite).
core::Result<std::vector<double>> group_advantages(AdvantageKind kind,
                                                   std::span<const double> scores,
                                                   const std::string& group);

// (A - mean) * rsqrt(max(var_pop, 1e-8)) in place, each value counted `tokens[i]` times: the mean
// and the population variance are over policy tokens, and the tokens of a sample share its
// advantage.
void whiten(std::span<double> advantages, std::span<const std::int64_t> tokens);

// One advantage per sample, [group][sample]; every token of a sample has it (gamma is 1 for group
// estimators). Errors of `group_advantages`; kInvalidArgument for a sample without tokens.
core::Result<std::vector<std::vector<double>>> update_advantages(
    const AlgoSettings& algo, const std::vector<TrainGroup>& groups);

}  // namespace troupe::learn
