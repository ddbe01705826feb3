#include "runtime/learn/evaluation.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/learn/advantage/advantage.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

namespace troupe::learn {

namespace {

// The mean of `values` and its bootstrap percentile interval.
Interval percentile_interval(const std::vector<double>& values, int resamples, std::uint64_t seed) {
  const std::size_t count = values.size();
  core::Rng rng(seed);
  std::vector<double> means(static_cast<std::size_t>(resamples));
  for (double& mean : means) {
    double total = 0;
    for (std::size_t i = 0; i < count; ++i)
      total += values[rng.next_below(count)];
    mean = total / static_cast<double>(count);
  }
  std::sort(means.begin(), means.end());
  const auto at = [&](double quantile) {
    return means[static_cast<std::size_t>(quantile * static_cast<double>(resamples - 1))];
  };
  return Interval{mean_of(values), at(0.025), at(0.975)};
}

// The score of the answer with most votes in one block; ties share.
double winning_score(std::span<const std::string> answers, std::span<const double> scores) {
  struct Votes {
    std::int64_t count = 0;
    double score = 0;
  };
  std::map<std::string_view, Votes> votes;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    Votes& vote = votes[answers[i]];
    ++vote.count;
    vote.score += answers[i].empty() ? 0 : scores[i];
  }
  std::int64_t most = 0, winners = 0;
  double total = 0;
  for (const auto& [answer, vote] : votes) {
    if (vote.count > most) most = vote.count, winners = 0, total = 0;
    if (vote.count < most) continue;
    ++winners;
    total += vote.score / static_cast<double>(vote.count);
  }
  return total / static_cast<double>(winners);
}

}  // namespace

core::Result<Interval> paired_bootstrap(const std::vector<double>& before,
                                        const std::vector<double>& after,
                                        int resamples,
                                        std::uint64_t seed) {
  if (before.size() != after.size() || before.size() < 2 || resamples < 100) {
    return core::fail(core::ErrorCode::kInvalidArgument,
                      "a paired bootstrap needs the same problems twice (at least 2, got " +
                          std::to_string(before.size()) + " and " + std::to_string(after.size()) +
                          ") and at least 100 resamples");
  }
  std::vector<double> differences(before.size());
  for (std::size_t i = 0; i < before.size(); ++i)
    differences[i] = after[i] - before[i];
  return percentile_interval(differences, resamples, seed);
}

core::Result<Interval> bootstrap_mean(const std::vector<double>& values,
                                      int resamples,
                                      std::uint64_t seed) {
  if (values.empty() || resamples < 100) {
    return core::fail(core::ErrorCode::kInvalidArgument,
                      "a bootstrap needs at least one value and 100 resamples");
  }
  return percentile_interval(values, resamples, seed);
}

std::optional<Interval> bootstrap(
    std::size_t problems,
    const std::function<std::optional<double>(std::span<const std::size_t> drawn)>& of,
    int resamples,
    std::uint64_t seed) {
  std::vector<std::size_t> drawn(problems);
  std::iota(drawn.begin(), drawn.end(), std::size_t{0});
  const auto value = of(drawn);
  if (!value) return std::nullopt;
  core::Rng rng(seed);
  std::vector<double> values = {*value};
  for (int i = 0; i < resamples; ++i) {
    for (std::size_t& one : drawn)
      one = static_cast<std::size_t>(rng.next_below(problems));
    if (const auto again = of(drawn)) values.push_back(*again);
  }
  std::sort(values.begin(), values.end());
  const auto at = [&](double quantile) {
    return values[static_cast<std::size_t>(quantile * static_cast<double>(values.size() - 1))];
  };
  return Interval{*value, at(0.025), at(0.975)};
}

double pass_at_k(std::int64_t n, std::int64_t right, std::int64_t k) {
  TROUPE_CHECK(k >= 1 && k <= n && right >= 0 && right <= n, "1 <= k <= n samples");
  if (n - right < k) return 1;
  double all_wrong = 1;
  for (std::int64_t i = n - right + 1; i <= n; ++i)
    all_wrong *= 1 - static_cast<double>(k) / static_cast<double>(i);
  return 1 - all_wrong;
}

double majority_at_k(std::span<const std::string> answers,
                     std::span<const double> scores,
                     std::int64_t k) {
  const auto block = static_cast<std::size_t>(k);
  TROUPE_CHECK(k >= 1 && answers.size() == scores.size() && answers.size() >= block,
               "1 <= k <= n samples");
  double total = 0;
  const std::size_t blocks = answers.size() / block;
  for (std::size_t b = 0; b < blocks; ++b)
    total += winning_score(answers.subspan(b * block, block), scores.subspan(b * block, block));
  return total / static_cast<double>(blocks);
}

}  // namespace troupe::learn
