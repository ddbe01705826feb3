// Comparing two evaluations of the same problems. Pure functions on small arrays.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/result.hpp"

namespace troupe::learn {

struct Interval {
  double mean = 0;   // of the differences
  double low = 0;    // 2.5th percentile
  double high = 0;   // 97.5th percentile
};

// Paired bootstrap over problems (Efron & Tibshirani 1993, ch. 13, percentile interval): mean of
// after[i] - before[i] and its 95 % interval from `resamples` draws of problems with replacement.
//   before, after  [problems] accuracy of each problem, same order; at least 2
core::Result<Interval> paired_bootstrap(const std::vector<double>& before,
                                        const std::vector<double>& after, int resamples,
                                        std::uint64_t seed);

}  // namespace troupe::learn
