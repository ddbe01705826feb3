// The group step and whitening: how the scores of a prompt's samples are compared with each other
// (docs/algorithms.md, "From scores to advantages", steps 5 and 7). Plain C++ on doubles; sums run
// in the order of the arguments, so equal inputs give equal bits. Stateless; safe on any thread.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/learn/settings.hpp"

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

// Whether the estimator compares the samples of a prompt, so that a group needs two of them.
bool compares_samples(AdvantageKind kind);

// The group step alone, over the scores R_1..R_n of one prompt:
//   kGrpo               (R_i - mean) / (std_{n-1} + 1e-4)
//   kDrGrpo             R_i - mean
//   kRloo               R_i - mean of the other n - 1
//   kReinforceBaseline  R_i - mean (whitened later, over the update)
//   others              R_i
// The first four need n >= 2 and are all exactly 0 when max = min. Errors, with `group` in the
// message: kInvalidArgument (too few samples), kNumeric (a score that is not finite).
core::Result<std::vector<double>> group_advantages(AdvantageKind kind,
                                                   std::span<const double> scores,
                                                   const std::string& group);

// (A - mean) * rsqrt(max(var_pop, 1e-8)) in place, one entry per policy token; without `divide`
// only A - mean.
void whiten(std::span<double> advantages, bool divide = true);

}  // namespace troupe::learn
