// Computes the figures of an evaluation: pass@k, maj@k, bootstrap intervals, and the difference
// between two evaluations of the same problems. Pure functions on small arrays.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::learn {

struct Interval {
  double mean = 0;
  double low = 0;   // 2.5th percentile
  double high = 0;  // 97.5th percentile
};

// Paired bootstrap over problems (Efron & Tibshirani 1993, ch. 13, percentile interval): mean of
// after[i] - before[i] and its 95 % interval from `resamples` draws of problems with replacement.
//   before, after  [problems] accuracy of each problem, same order
// Error kInvalidArgument: sizes that differ, fewer than 2 problems or 100 resamples.
core::Result<Interval> paired_bootstrap(const std::vector<double>& before,
                                        const std::vector<double>& after,
                                        int resamples,
                                        std::uint64_t seed);

// The mean of `values`, one per problem, with its 95 % bootstrap percentile interval. One value
// gives an interval of width 0. Error kInvalidArgument: no value, fewer than 100 resamples.
core::Result<Interval> bootstrap_mean(const std::vector<double>& values,
                                      int resamples,
                                      std::uint64_t seed);

// A statistic of problems with its 95 % bootstrap percentile interval; `of` is given the indices of
// drawn problems. Draws without a value (of a constant, a correlation is none) are left out.
// nullopt: the problems themselves have none.
std::optional<Interval> bootstrap(
    std::size_t problems,
    const std::function<std::optional<double>(std::span<const std::size_t> drawn)>& of,
    int resamples,
    std::uint64_t seed);

// The chance that at least one of k samples is right, from `right` of `n` samples of a problem: the
// unbiased estimator 1 - C(n - right, k) / C(n, k) of Chen et al. 2021 ("Evaluating Large Language
// Models Trained on Code"), as its product form. 1 <= k <= n.
double pass_at_k(std::int64_t n, std::int64_t right, std::int64_t k);

// The expected score of a majority vote over k samples. `answers` and `scores` belong to one
// problem's samples, in order. Returns the mean over the n / k disjoint blocks of k samples (the
// rest is not used). Answers that tie for most votes count with the mean of their scores. Empty
// answers vote for "no answer", which scores 0. 1 <= k <= n.
double majority_at_k(std::span<const std::string> answers,
                     std::span<const double> scores,
                     std::int64_t k);

}  // namespace troupe::learn
