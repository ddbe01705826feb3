// Shapes an update's scores before samples are compared: running normaliser and length penalties
// (docs/algorithms.md, "From scores to advantages", steps 1 and 2). Plain C++ on doubles. The
// trainer owns the normaliser; the functions are pure. Any one thread.
#pragma once

#include "runtime/experience/group.hpp"
#include "runtime/learn/settings.hpp"

#include <cstdint>

namespace troupe::learn {

// Running mean and deviation of all values added so far (Welford 1962). The three numbers are its
// whole state, so a restored one continues with the same bits.
struct RunningMoments {
  std::uint64_t count = 0;
  double mean = 0;
  double squares = 0;  // sum of squared distances from the mean

  void add(double value);
  double deviation() const;  // of the population; 0 before the second value
  // (value - mean) / max(deviation, 1e-8); `value` itself before the second value was added.
  double normalised(double value) const;
};

// The penalty, at least 0, to subtract from the score of a response of `tokens` tokens: with
// buffer = overlong_tokens and L* = response_tokens_max - buffer, a response longer than L* loses
// overlong_factor * min(tokens - L*, buffer) / buffer (DAPO, Yu et al. 2025, eq. 13).
double overlong_penalty(const RewardShaping& shaping, std::int64_t tokens);

// The score of a sample that was cut by length. With c = stop_properly_coef and R = score:
// R - (1 - c)|R| for c in [0, 1], or c itself if c is below 0. (OpenRLHF's c R would raise a
// negative score.)
double cut_score(const RewardShaping& shaping, double score);

// Subtracts the overlong penalty, then applies cut_score; a score that is not finite is unchanged.
double shaped_score(const RewardShaping& shaping,
                    const experience::Trajectory& sample,
                    double score);

}  // namespace troupe::learn
