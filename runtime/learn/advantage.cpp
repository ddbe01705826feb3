// Group steps, clipping and whitening of scores.
#include "runtime/learn/advantage.hpp"

#include "runtime/core/check.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::learn {
namespace {

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values)
    sum += value;
  return sum / static_cast<double>(values.size());
}

// The deviation of a sample: divides by n - 1.
double deviation_of(std::span<const double> values, double mean) {
  double sum = 0;
  for (const double value : values)
    sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

std::vector<double> grpo(std::span<const double> scores) {
  std::vector<double> advantages(scores.size());
  const double mean = mean_of(scores);
  const double scale = deviation_of(scores, mean) + kGrpoStdFloor;
  for (std::size_t i = 0; i < scores.size(); ++i)
    advantages[i] = (scores[i] - mean) / scale;
  return advantages;
}

std::vector<double> centred(std::span<const double> scores) {
  const double mean = mean_of(scores);
  std::vector<double> advantages;
  for (const double score : scores)
    advantages.push_back(score - mean);
  return advantages;
}

std::vector<double> leave_one_out(std::span<const double> scores) {
  std::vector<double> advantages;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    double others = 0;
    for (std::size_t j = 0; j < scores.size(); ++j) {
      if (j != i) others += scores[j];
    }
    advantages.push_back(scores[i] - others / static_cast<double>(scores.size() - 1));
  }
  return advantages;
}

}  // namespace

std::string ticket_name(const core::Ticket& ticket) {
  return "update " + std::to_string(ticket.update) + ", slot " + std::to_string(ticket.slot);
}

core::Result<std::vector<double>> group_advantages(AdvantageKind kind,
                                                   std::span<const double> scores,
                                                   const std::string& group) {
  if (scores.size() < 2) {
    return core::fail(core::ErrorCode::kInvalidArgument,
                      "group of " + group + " has " + std::to_string(scores.size()) +
                          " finished sample(s); a group advantage needs at least 2 "
                          "(--rollout.n_samples_per_prompt)");
  }
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!std::isfinite(scores[i])) {
      return core::fail(core::ErrorCode::kNumeric, "the score of sample " + std::to_string(i) +
                                                       " in the group of " + group +
                                                       " is not a finite number; check the reward");
    }
  }
  // Said outright, for the mean of equal numbers may differ from them by a rounding.
  const auto [low, high] = std::minmax_element(scores.begin(), scores.end());
  if (*low == *high) return std::vector<double>(scores.size(), 0.0);
  switch (kind) {
    case AdvantageKind::kGrpo:
      return grpo(scores);
    case AdvantageKind::kDrGrpo:
    case AdvantageKind::kReinforceBaseline:
      return centred(scores);
    case AdvantageKind::kRloo:
      return leave_one_out(scores);
  }
  TROUPE_CHECK(false, "unknown advantage kind");
}

void whiten(std::span<double> advantages, std::span<const std::int64_t> tokens) {
  TROUPE_CHECK(advantages.size() == tokens.size(), "one token count per advantage");
  double count = 0, sum = 0;
  for (std::size_t i = 0; i < advantages.size(); ++i) {
    count += static_cast<double>(tokens[i]);
    sum += static_cast<double>(tokens[i]) * advantages[i];
  }
  if (count == 0) return;
  const double mean = sum / count;
  double squares = 0;
  for (std::size_t i = 0; i < advantages.size(); ++i) {
    const double distance = advantages[i] - mean;
    squares += static_cast<double>(tokens[i]) * distance * distance;
  }
  const double scale = 1.0 / std::sqrt(std::max(squares / count, kWhitenVarianceMin));
  for (double& advantage : advantages)
    advantage = (advantage - mean) * scale;
}

core::Result<std::vector<std::vector<double>>> update_advantages(
    const AlgoSettings& algo, const std::vector<TrainGroup>& groups) {
  std::vector<std::vector<double>> result;
  std::vector<double> flat;
  std::vector<std::int64_t> tokens;
  for (const TrainGroup& group : groups) {
    const std::string name = ticket_name(group.ticket);
    std::vector<double> scores;
    for (const TrainSample& sample : group.samples) {
      if (sample.tokens.empty()) {
        return core::fail(core::ErrorCode::kInvalidArgument,
                          "sample " + std::to_string(scores.size()) + " in the group of " + name +
                              " has no tokens; unfinished samples must be left out");
      }
      tokens.push_back(static_cast<std::int64_t>(sample.tokens.size()));
      // An infinite score is a broken reward, not a large one: it stays for the group step to
      // refuse.
      scores.push_back(std::isfinite(sample.score)
                           ? std::clamp(sample.score, algo.reward_clip_low, algo.reward_clip_high)
                           : sample.score);
    }
    TROUPE_TRY_ASSIGN(advantages, group_advantages(algo.advantage, scores, name));
    flat.insert(flat.end(), advantages.begin(), advantages.end());
    result.push_back(std::move(advantages));
  }
  if (algo.advantage != AdvantageKind::kReinforceBaseline) return result;
  whiten(flat, tokens);
  std::size_t next = 0;
  for (auto& group : result) {
    for (double& advantage : group)
      advantage = flat[next++];
  }
  return result;
}

}  // namespace troupe::learn
