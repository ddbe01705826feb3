#include "runtime/learn/advantage/reward_shaping.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::learn {
namespace {

constexpr double kDeviationMin = 1e-8;

// Drawn tokens: the length limit is one of a turn.
std::int64_t longest_turn(const experience::Trajectory& sample) {
  auto end = static_cast<std::int64_t>(sample.tokens.size()), longest = std::int64_t{0};
  if (sample.turns.empty()) return end;
  for (auto turn = sample.turns.rbegin(); turn != sample.turns.rend(); ++turn) {
    longest = std::max(longest, end - turn->begin);
    end = turn->begin;
  }
  return longest;
}

}  // namespace

void RunningMoments::add(double value) {
  ++count;
  const double distance = value - mean;
  mean += distance / static_cast<double>(count);
  squares += distance * (value - mean);
}

double RunningMoments::deviation() const {
  return count < 2 ? 0 : std::sqrt(squares / static_cast<double>(count));
}

double RunningMoments::normalised(double value) const {
  if (count < 2) return value;
  return (value - mean) / std::max(deviation(), kDeviationMin);
}

double overlong_penalty(const RewardShaping& shaping, std::int64_t tokens) {
  if (shaping.overlong_buffer_len <= 0) return 0;
  const std::int64_t over = tokens - (shaping.response_tokens_max - shaping.overlong_buffer_len);
  if (over <= 0) return 0;
  const auto buffer = static_cast<double>(shaping.overlong_buffer_len);
  return shaping.overlong_penalty_factor * std::min(static_cast<double>(over), buffer) / buffer;
}

double cut_score(const RewardShaping& shaping, double score) {
  const double c = shaping.stop_properly_penalty_coef;
  if (c < 0) return c;
  return score - (1 - c) * std::fabs(score);
}

double shaped_score(const RewardShaping& shaping,
                    const experience::Trajectory& sample,
                    double score) {
  if (!std::isfinite(score)) return score;
  score -= overlong_penalty(shaping, longest_turn(sample));
  return sample.truncated() ? cut_score(shaping, score) : score;
}

}  // namespace troupe::learn
