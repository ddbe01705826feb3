// The shaping of an update's scores before they are compared: normaliser, length shaping, clip
// (docs/algorithms.md, "From scores to advantages", steps 1 to 3). Plain C++ on doubles. The
// trainer owns the normaliser; the functions are pure. Any one thread.
#pragma once

#include "runtime/experience/group.hpp"
#include "runtime/learn/settings.hpp"

#include <cstdint>

namespace troupe::learn {

// Mean and deviation of all numbers so far (Welford 1962). Its state is the three numbers, so a
// restored one goes on with the same bits.
struct RunningMoments {
  std::uint64_t count = 0;
  double mean = 0;
  double squares = 0;  // sum of squared distances from the mean

  void add(double value);
  double deviation() const;  // of the population; 0 before the second number
  // (value - mean) / max(deviation, 1e-8); the value itself before the second number.
  double normalised(double value) const;
};

// L* = max - buffer; a response longer than L* loses factor * min(length - L*, buffer) / buffer
// (DAPO, Yu et al. 2025, eq. 13). 0 without a buffer.
double overlong_penalty(const RewardShaping& shaping, std::int64_t tokens);

// Of a sample that was cut by length, with c = stop_properly_coef: R - (1 - c)|R| for c in [0, 1],
// c itself below 0. (The peer's c R would reward a truncated sample of negative score.)
double cut_score(const RewardShaping& shaping, double score);

// Subtracts the overlong penalty, then applies cut_score; a score that is not finite is unchanged.
double shaped_score(const RewardShaping& shaping,
                    const experience::Trajectory& sample,
                    double score);

}  // namespace troupe::learn
