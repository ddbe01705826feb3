// Group steps and whitening.
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

bool compares_samples(AdvantageKind kind) {
  return kind == AdvantageKind::kGrpo || kind == AdvantageKind::kDrGrpo ||
         kind == AdvantageKind::kRloo || kind == AdvantageKind::kReinforceBaseline;
}

core::Result<std::vector<double>> group_advantages(AdvantageKind kind,
                                                   std::span<const double> scores,
                                                   const std::string& group) {
  if (compares_samples(kind) && scores.size() < 2) {
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
  if (!compares_samples(kind)) return std::vector<double>(scores.begin(), scores.end());
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
    case AdvantageKind::kReinforce:
    case AdvantageKind::kGae:
    case AdvantageKind::kVtrace:
      break;
  }
  TROUPE_CHECK(false, "unknown advantage kind");
}

void whiten(std::span<double> advantages, bool divide) {
  if (advantages.empty()) return;
  const double mean = mean_of(advantages);
  double squares = 0;
  for (double& advantage : advantages) {
    advantage -= mean;
    squares += advantage * advantage;
  }
  if (!divide) return;
  const double variance = squares / static_cast<double>(advantages.size());
  const double scale = 1.0 / std::sqrt(std::max(variance, kWhitenVarianceMin));
  for (double& advantage : advantages)
    advantage *= scale;
}

}  // namespace troupe::learn
