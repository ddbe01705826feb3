#include "runtime/learn/advantage/turn_credit.hpp"

#include "runtime/learn/advantage/advantage.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::learn {
namespace {

using experience::Episode;
using experience::Path;
using experience::Trajectory;

// The sum of each turn's tokens; empty for an empty list.
std::vector<double> by_turn(std::span<const double> tokens, std::span<const std::uint32_t> turns) {
  std::vector<double> sums;
  for (std::size_t i = 0; i < turns.size() && !tokens.empty(); ++i) {
    const std::size_t end = i + 1 < turns.size() ? turns[i + 1] : tokens.size();
    const auto own = tokens.subspan(turns[i], end - turns[i]);
    sums.push_back(std::accumulate(own.begin(), own.end(), 0.0));
  }
  return sums;
}

std::vector<double> spread(const std::vector<double>& values,
                           std::span<const std::uint32_t> turns,
                           std::size_t tokens) {
  std::vector<double> all;
  for (std::size_t i = 0; i < values.size(); ++i)
    all.resize(i + 1 < turns.size() ? turns[i + 1] : tokens, values[i]);
  return all;
}

bool any_forks(const std::vector<Episode>& episodes, std::size_t samples) {
  return episodes.size() != samples;
}

}  // namespace

TokenReturns path_returns(const AlgoSettings& algo,
                          const SampleRewards& path,
                          std::span<const std::uint32_t> turns) {
  if (!algo.credit->by_turn) return algo.advantage.estimator->returns(algo, path);
  std::vector<double> values;
  for (const std::uint32_t begin : turns) {
    if (!path.values.empty()) values.push_back(path.values[begin]);
  }
  const std::vector<double> rewards = by_turn(path.rewards, turns);
  const std::vector<double> log_w = by_turn(path.log_w, turns);
  const TokenReturns of_turns = algo.advantage.estimator->returns(algo, {rewards, values, log_w});
  const std::size_t tokens = path.rewards.size();
  return {spread(of_turns.advantages, turns, tokens), spread(of_turns.targets, turns, tokens)};
}

core::Result<std::vector<double>> episode_advantages(const AlgoSettings& algo,
                                                     const std::vector<Trajectory>& samples,
                                                     std::span<const double> scores,
                                                     const std::string& name) {
  const auto episodes = experience::episodes_of(samples);
  std::vector<double> means, tokens;
  for (const Episode& episode : episodes) {
    const auto own = scores.subspan(episode.begin, episode.leaves());
    means.push_back(own.size() == 1 ? own[0] : mean_of(own));
    tokens.push_back(static_cast<double>(experience::tokens_of(samples, episode)));
  }
  const GroupScores group{means, tokens};
  TROUPE_TRY_ASSIGN(advantages, group_advantages(algo.advantage.estimator, group, name));
  if (!any_forks(episodes, samples.size())) return advantages;
  std::vector<double> all(scores.begin(), scores.end());
  if (!algo.advantage.estimator->compares_samples()) return all;
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  const bool equal = *low == *high;
  const double slope = equal || algo.advantage.estimator->slope == nullptr
                           ? 1.0
                           : algo.advantage.estimator->slope(group);
  for (std::size_t e = 0; e < episodes.size(); ++e) {
    for (std::size_t i = episodes[e].begin; i < episodes[e].end; ++i) {
      const double over = episodes[e].leaves() == 1 ? 0.0 : scores[i] - means[e];
      all[i] = equal ? 0.0 : advantages[e] + slope * over;
    }
  }
  return all;
}

std::vector<std::vector<double>> mean_over_paths(const std::vector<Trajectory>& samples,
                                                 const std::vector<Path>& paths,
                                                 std::vector<std::vector<double>> lists) {
  std::vector<std::vector<double>> means;
  for (const Episode& episode : experience::episodes_of(samples)) {
    if (episode.leaves() == 1) {
      means.push_back(std::move(lists[episode.begin]));
      continue;
    }
    std::vector<std::vector<std::size_t>> counts;
    for (std::size_t i = episode.begin; i < episode.end; ++i) {
      means.emplace_back(samples[i].tokens.size());
      counts.emplace_back(samples[i].tokens.size());
    }
    for (std::size_t i = episode.begin; i < episode.end; ++i) {
      for (std::size_t t = 0; t < paths[i].tokens.size(); ++t) {
        const auto& [owner, token] = paths[i].tokens[t];
        means[owner][token] += lists[i][t];
        ++counts[owner - episode.begin][token];
      }
    }
    for (std::size_t i = episode.begin; i < episode.end; ++i) {
      for (std::size_t t = 0; t < means[i].size(); ++t)
        means[i][t] /= static_cast<double>(counts[i - episode.begin][t]);
    }
  }
  return means;
}

}  // namespace troupe::learn
