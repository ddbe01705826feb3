// The table of advantage estimators (docs/algorithms.md, "From scores to advantages", steps 5 to
// 7). To add one, add a row and a function in estimators.cpp. Immutable; any thread.
#pragma once

#include "runtime/learn/advantage/token_returns.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace troupe::learn {

struct AlgoSettings;

// Added to the standard deviation in `group_norm`. A floor of 1e-9, as other trainers use it, would
// turn rounding noise into advantages.
inline constexpr double kGrpoStdFloor = 1e-4;

// Inputs of an estimator for one sample; one entry per token.
struct SampleRewards {
  std::span<const double> rewards;
  std::span<const double> values;  // of the critic; empty without one
  std::span<const double> log_w;   // l_p - l_mu; empty unless the estimator has reads_start
};

// The samples of one prompt, in order; an episode that forks is one, with the mean of its samples'
// scores.
struct GroupScores {
  std::span<const double> scores;
  std::span<const double> tokens;  // drawn tokens of each
};

struct Estimator {
  std::string_view name, alias = {};
  std::string_view help;         // one line, for the configuration
  bool has_critic = false;       // reads the critic's values and computes their targets
  bool whitens = false;          // advantages are whitened over all tokens of the update
  bool reads_start = false;      // reads l_p before the first step, for weights w = exp(l_p - l_mu)
  bool divides_by_mean = false;  // no score may be below 0
  // Advantages are multiplied by the samples of the update over those whose group has scores that
  // differ.
  bool rescales = false;
  // Turns the scores of one prompt's samples into advantages relative to each other; null: scores
  // are used unchanged. Gets at least two scores, finite and not all equal.
  std::vector<double> (*group_step)(const GroupScores& group) = nullptr;
  // How an advantage grows with its own score while the group's statistics stay: what the samples
  // of an episode differ by. Null: by 1.
  double (*slope)(const GroupScores& group) = nullptr;
  // Advantages (and the critic's targets, if any) of one sample.
  TokenReturns (*returns)(const AlgoSettings& algo, const SampleRewards& sample) = nullptr;

  bool compares_samples() const { return group_step != nullptr; }

  static std::span<const Estimator> all();
};

}  // namespace troupe::learn
