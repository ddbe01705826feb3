// Correlations of two lists of numbers, such as scores and lengths. Pure functions on small arrays.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace troupe::learn {

// Pearson's coefficient, the covariance over the product of the deviations, from sums in the order
// of the lists. nullopt: fewer than two values, or one list has no spread. Same sizes.
std::optional<double> pearson(std::span<const double> x, std::span<const double> y);

// Spearman's: Pearson's of the ranks; equal values share the mean of their ranks.
std::optional<double> spearman(std::span<const double> x, std::span<const double> y);

// The ranks from 1, equal values with the mean of theirs.
std::vector<double> ranks_of(std::span<const double> values);

}  // namespace troupe::learn
