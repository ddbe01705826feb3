// Two steps from scores to advantages (docs/algorithms.md, "From scores to advantages", steps 5 and
// 7): the group step compares the scores of one prompt's samples, and whitening normalises all
// advantages of an update. Plain C++ on doubles; sums run in the order of the arguments, so equal
// inputs give equal bits. Stateless; safe on any thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/learn/advantage/estimators.hpp"
#include "runtime/learn/chosen.hpp"

#include <span>
#include <string>
#include <vector>

namespace troupe::learn {

// Smallest variance that whitening divides by.
inline constexpr double kWhitenVarianceMin = 1e-8;

// The mean of at least one value, summed in order.
double mean_of(std::span<const double> values);

// Applies the estimator's group step to the scores of one prompt's samples. An estimator that
// compares samples needs at least two and gives exactly 0 when all scores are equal; any other
// returns the scores unchanged. Errors, with `name` (the ticket's) in the message: kInvalidArgument
// (too few samples), kNumeric (a score that is not finite, or below 0 where the estimator divides
// by the mean).
core::Result<std::vector<double>> group_advantages(Chosen<Estimator> estimator,
                                                   const GroupScores& group,
                                                   const std::string& name);

// Replaces each A by (A - mean) / sqrt(max(population variance, 1e-8)); without `divide` by
// A - mean. `advantages` has one entry per policy token of the update.
void whiten(std::span<double> advantages, bool divide = true);

}  // namespace troupe::learn
