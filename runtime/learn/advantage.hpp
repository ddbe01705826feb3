// The group step and whitening: how the scores of a prompt's samples are compared with each other
// (docs/algorithms.md, "From scores to advantages", steps 5 and 7). Plain C++ on doubles; sums run
// in the order of the arguments, so equal inputs give equal bits. Stateless; safe on any thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/learn/chosen.hpp"
#include "runtime/learn/estimators.hpp"

#include <span>
#include <string>
#include <vector>

namespace troupe::learn {

// Smallest variance that whitening divides by.
inline constexpr double kWhitenVarianceMin = 1e-8;

// The sum in order, over the count.
double mean_of(std::span<const double> values);

// The group step alone, over the scores R_1..R_n of one prompt; estimators that compare samples
// need n >= 2, and all results are exactly 0 when max = min. Errors, with `group` in the message:
// kInvalidArgument (too few samples), kNumeric (a score that is not finite).
core::Result<std::vector<double>> group_advantages(Chosen<Estimator> estimator,
                                                   std::span<const double> scores,
                                                   const std::string& group);

// (A - mean) * rsqrt(max(var_pop, 1e-8)) in place, one entry per policy token; without `divide`
// only A - mean.
void whiten(std::span<double> advantages, bool divide = true);

}  // namespace troupe::learn
