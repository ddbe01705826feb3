#include "runtime/learn/advantage/update_advantages.hpp"

#include "runtime/core/check.hpp"
#include "runtime/learn/advantage/advantage.hpp"
#include "runtime/learn/advantage/kl_control.hpp"
#include "runtime/learn/advantage/token_returns.hpp"
#include "runtime/learn/advantage/turn_credit.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace troupe::learn {
namespace {

// Runs steps 1 to 8 of docs/algorithms.md, "From scores to advantages", over one update.
class Chain {
 public:
  Chain(const AlgoSettings& algo,
        const std::vector<experience::Group>& groups,
        const TokenTable<float>& scored,
        RunningMoments& moments)
      : algo_(algo),
        groups_(groups),
        scored_(scored),
        moments_(moments),
        order_(by_ticket(groups)) {}

  core::Result<UpdateAdvantages> run() {
    for (const experience::Group& group : groups_)
      TROUPE_TRY(check(group));
    if (algo_.shaping.normalise_running) take_in_scores();
    result_.tokens.resize(groups_.size());
    if (algo_.advantage.estimator->has_critic) result_.returns.resize(groups_.size());
    for (const std::size_t index : order_)
      TROUPE_TRY(group_step(index));
    const auto samples = static_cast<double>(samples_);
    if (samples_ > 0) result_.kl_of_sample = kl_sum_ / samples;
    if (algo_.advantage.estimator->rescales) rescale_all();
    if (algo_.advantage.estimator->whitens) whiten_all();
    if (algo_.needs_teacher()) add_teacher();
    return std::move(result_);
  }

 private:
  core::Result<void> check(const experience::Group& group) const {
    for (std::size_t i = 0; i < group.samples.size(); ++i) {
      const experience::Trajectory& sample = group.samples[i];
      const auto refuse = [&](const char* why) {
        return core::fail(ErrorCode::kInvalidArgument,
                          "sample " + std::to_string(i) + " in the group of " +
                              experience::name_of(group.ticket) + " has " + why);
      };
      const std::size_t count = sample.tokens.size();
      if (count == 0) return refuse("no tokens; unfinished samples must be left out");
      if (algo_.advantage.estimator->has_critic && sample.values.size() != count) {
        return refuse("not one value of the critic per token");
      }
      if (algo_.needs_teacher() && sample.teacher.size() != count) {
        return refuse("not one log-prob of the teacher per token");
      }
      if (algo_.kl.init_coef != 0 && sample.reference.size() != count) {
        return refuse("not one reference log-prob per token");
      }
    }
    return {};
  }

  void take_in_scores() {
    for (const std::size_t index : order_) {
      const auto& samples = groups_[index].samples;
      const auto paths = experience::paths_of(samples);
      for (const experience::Episode& episode : experience::episodes_of(samples)) {
        double sum = raw_score(samples, paths, episode.begin);
        for (std::size_t i = episode.begin + 1; i < episode.end; ++i)
          sum += raw_score(samples, paths, i);
        if (episode.leaves() > 1) sum /= static_cast<double>(episode.leaves());
        if (std::isfinite(sum)) moments_.add(sum);
      }
    }
  }

  double clipped(double score) const {
    return std::clamp(score, algo_.reward_clip_low, algo_.reward_clip_high);
  }

  // The score of a sample before any step; with credit `episode` all rewards on its path with it.
  double raw_score(const std::vector<experience::Trajectory>& samples,
                   const std::vector<experience::Path>& paths,
                   std::size_t sample) const {
    const double score = *samples[sample].score;
    return algo_.credit->by_episode ? experience::path_total(samples, paths[sample], score) : score;
  }

  // Steps 1 to 3 for one sample. A score that is not finite stays as it is, so that the group step
  // reports it.
  double score_of(const experience::Trajectory& sample, double score) const {
    if (!std::isfinite(score)) return score;
    if (algo_.shaping.normalise_running) score = moments_.normalised(score);
    score = shaped_score(algo_.shaping, sample, score);
    return algo_.shaping.clip_order->after_group_step ? score : clipped(score);
  }

  std::vector<double> kl_of(std::size_t index, std::size_t sample) const {
    std::vector<double> kl =
        start_log_ratios(scored_, groups_, index, sample, groups_[index].samples[sample].reference);
    for (double& d : kl)
      d = reward_kl(algo_.kl.estimator, d);
    return kl;
  }

  // Adds the rewards of the group's steps at their tokens; compared with each other where the
  // estimator compares samples. Returns whether any of them is not 0.
  core::Result<bool> add_steps(const experience::Group& group,
                               std::vector<std::vector<double>>& rewards) const {
    std::vector<double> steps;
    for (const experience::Trajectory& sample : group.samples) {
      for (const experience::StepReward& step : sample.steps)
        steps.push_back(step.reward);
    }
    if (algo_.compares_steps && algo_.advantage.estimator->compares_samples()) {
      const std::vector<double> ones(steps.size(), 1.0);
      if (steps.size() < 2) {
        steps.assign(steps.size(), 0.0);
      } else {
        TROUPE_TRY_SET(steps, group_advantages(algo_.advantage.estimator, {steps, ones},
                                               "the steps of " + name_of(group.ticket)));
      }
    }
    std::size_t next = 0;
    for (std::size_t i = 0; i < group.samples.size(); ++i) {
      for (const experience::StepReward& step : group.samples[i].steps)
        rewards[i][step.token] += steps[next++];
    }
    return std::any_of(steps.begin(), steps.end(), [](double step) { return step != 0; });
  }

  core::Result<void> group_step(std::size_t index) {
    const experience::Group& group = groups_[index];
    const auto paths = experience::paths_of(group.samples);
    const auto episodes = experience::episodes_of(group.samples);
    std::vector<std::vector<double>> rewards;  // [sample][token]
    std::vector<std::vector<double>> kl;
    for (std::size_t i = 0; i < group.samples.size(); ++i) {
      rewards.emplace_back(group.samples[i].tokens.size());
      if (algo_.kl.init_coef == 0) continue;
      kl.push_back(kl_of(index, i));
      kl_sum_ += std::accumulate(kl[i].begin(), kl[i].end(), 0.0);
      for (std::size_t t = 0; t < kl[i].size() && kl_by_token(); ++t)
        rewards[i][t] = -algo_.kl.init_coef * kl[i][t];
    }
    std::vector<double> scores;
    for (std::size_t i = 0; i < group.samples.size(); ++i) {
      double score = score_of(group.samples[i], raw_score(group.samples, paths, i));
      if (algo_.kl_in_reward() && algo_.kl.per_sample) {
        const std::vector<double> on_path = along(paths[i], kl);
        score -= algo_.kl.init_coef * std::accumulate(on_path.begin(), on_path.end(), 0.0);
      }
      scores.push_back(score);
    }
    samples_ += std::ssize(episodes);
    TROUPE_TRY_ASSIGN(stepped, episode_advantages(algo_, group.samples, scores,
                                                  experience::name_of(group.ticket)));
    bool steps_differ = false;
    if (!algo_.credit->by_episode) {
      TROUPE_TRY_SET(steps_differ, add_steps(group, rewards));
    }
    if (differ(episodes, scores, stepped) || steps_differ) differing_ += episodes.size();
    std::vector<std::vector<double>> advantages, targets;  // [sample][token of its path]
    for (std::size_t i = 0; i < stepped.size(); ++i) {
      std::vector<double> on_path = along(paths[i], rewards);
      on_path.back() +=
          algo_.shaping.clip_order->after_group_step ? clipped(stepped[i]) : stepped[i];
      TokenReturns returns = estimate(index, paths[i], on_path);
      advantages.push_back(std::move(returns.advantages));
      targets.push_back(std::move(returns.targets));
    }
    result_.tokens[index] = mean_over_paths(group.samples, paths, std::move(advantages));
    if (!algo_.advantage.estimator->has_critic) return {};
    for (const auto& sample : mean_over_paths(group.samples, paths, std::move(targets)))
      result_.returns[index].emplace_back(sample.begin(), sample.end());
    return {};
  }

  // Whether the group has a gradient: forks may differ where their episodes do not.
  static bool differ(const std::vector<experience::Episode>& episodes,
                     const std::vector<double>& scores,
                     const std::vector<double>& stepped) {
    const auto& numbers = episodes.size() == scores.size() ? scores : stepped;
    const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
    return *low != *high;
  }

  // Whether the KL is a reward of each token.
  bool kl_by_token() const { return algo_.kl_in_reward() && !algo_.kl.per_sample; }

  // The numbers of a path's tokens. `lists`: by sample and token.
  template <class Number>
  static std::vector<double> along(const experience::Path& path,
                                   const std::vector<std::vector<Number>>& lists) {
    std::vector<double> numbers;
    numbers.reserve(path.tokens.size() + 1);
    for (const auto& [sample, token] : path.tokens)
      numbers.push_back(static_cast<double>(lists[sample][token]));
    return numbers;
  }

  TokenReturns estimate(std::size_t index,
                        const experience::Path& path,
                        const std::vector<double>& rewards) const {
    const Estimator& estimator = *algo_.advantage.estimator;
    std::vector<double> values, log_w;
    for (const auto& [sample, token] : path.tokens) {
      const experience::Trajectory& one = groups_[index].samples[sample];
      if (estimator.has_critic) values.push_back(one.values[token]);
      if (estimator.reads_start) log_w.push_back(log_weight(index, sample, token));
    }
    return path_returns(algo_, {rewards, values, log_w}, path.turns);
  }

  double log_weight(std::size_t index, std::size_t sample, std::size_t token) const {
    const std::vector<float>& mu = groups_[index].samples[sample].behaviour;
    const std::vector<float>& l_p = scored_.empty() ? mu : scored_[index][sample];
    return static_cast<double>(l_p[token]) - static_cast<double>(mu[token]);
  }

  std::vector<double> log_weights(std::size_t index, std::size_t sample) const {
    return start_log_ratios(scored_, groups_, index, sample,
                            groups_[index].samples[sample].behaviour);
  }

  // A group of equal scores has no gradient but counts in the means of the loss: the others take
  // its share.
  void rescale_all() {
    if (differing_ == 0) return;
    const double factor = static_cast<double>(samples_) / static_cast<double>(differing_);
    for (auto& group : result_.tokens) {
      for (auto& sample : group) {
        for (double& advantage : sample)
          advantage *= factor;
      }
    }
  }

  void whiten_all() {
    std::vector<double> flat;
    for (const std::size_t index : order_) {
      for (const auto& sample : result_.tokens[index])
        flat.insert(flat.end(), sample.begin(), sample.end());
    }
    whiten(flat, !algo_.advantage.no_std_norm);
    std::size_t next = 0;
    for (const std::size_t index : order_) {
      for (auto& sample : result_.tokens[index]) {
        for (double& advantage : sample)
          advantage = flat[next++];
      }
    }
    weigh_reinforce();
  }

  // V-trace's policy gradient has the factor min(rho_max, w_t). Objectives with a ratio or weight
  // have such a factor already; for `reinforce`, whose objective is A l, A gets it here.
  void weigh_reinforce() {
    if (!algo_.advantage.estimator->reads_start || algo_.objective->has_ratio()) return;
    for (std::size_t index = 0; index < groups_.size(); ++index) {
      for (std::size_t i = 0; i < result_.tokens[index].size(); ++i) {
        const std::vector<double> log_w = log_weights(index, i);
        for (std::size_t t = 0; t < log_w.size(); ++t) {
          result_.tokens[index][i][t] *= std::min(algo_.advantage.rho_max, std::exp(log_w[t]));
        }
      }
    }
  }

  // The reverse KL to the teacher as one advantage a token. Nothing of later tokens: a token's own
  // log-ratio is what its choice changes at its place.
  void add_teacher() {
    double kl = 0, tokens = 0;
    for (const std::size_t index : order_) {
      for (std::size_t i = 0; i < result_.tokens[index].size(); ++i) {
        const experience::Trajectory& sample = groups_[index].samples[i];
        std::vector<double>& advantages = result_.tokens[index][i];
        for (std::size_t t = 0; t < advantages.size(); ++t) {
          const double over =
              static_cast<double>(sample.teacher[t]) - static_cast<double>(sample.behaviour[t]);
          const double bounded = std::clamp(over, -kTeacherLogRatio_max, kTeacherLogRatio_max);
          advantages[t] = algo_.reward_coef * advantages[t] + algo_.teacher_coef * bounded;
          kl -= over;
          ++tokens;
        }
      }
    }
    if (tokens > 0) result_.kl_teacher = kl / tokens;
  }

  const AlgoSettings& algo_;
  const std::vector<experience::Group>& groups_;
  const TokenTable<float>& scored_;
  RunningMoments& moments_;
  const std::vector<std::size_t> order_;
  UpdateAdvantages result_;
  double kl_sum_ = 0;
  std::int64_t samples_ = 0;  // episodes
  // Episodes of groups whose scores, or scores of steps, are not all equal.
  std::size_t differing_ = 0;
};

}  // namespace

std::vector<double> start_log_ratios(const TokenTable<float>& scored,
                                     const std::vector<experience::Group>& groups,
                                     std::size_t group,
                                     std::size_t sample,
                                     const std::vector<float>& logprobs) {
  const std::vector<float>& l_p =
      scored.empty() ? groups[group].samples[sample].behaviour : scored[group][sample];
  std::vector<double> over(logprobs.size());
  for (std::size_t t = 0; t < over.size(); ++t)
    over[t] = static_cast<double>(l_p[t]) - static_cast<double>(logprobs[t]);
  return over;
}

std::vector<std::size_t> by_ticket(const std::vector<experience::Group>& groups) {
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return groups[a].ticket < groups[b].ticket;
  });
  return order;
}

core::Result<UpdateAdvantages> update_advantages(const AlgoSettings& algo,
                                                 const std::vector<experience::Group>& groups,
                                                 const TokenTable<float>& scored,
                                                 RunningMoments& moments) {
  return Chain(algo, groups, scored, moments).run();
}

namespace {

// Ranks an episode by the mean over its samples: for one sample, the advantage of its first token;
// a fork's own score shows in its last.
double rank_of(const experience::Episode& episode,
               const std::vector<std::vector<double>>& advantages) {
  if (episode.leaves() == 1) return advantages[episode.begin].front();
  double sum = 0;
  for (std::size_t i = episode.begin; i < episode.end; ++i)
    sum += advantages[i].back();
  return sum / static_cast<double>(episode.leaves());
}

}  // namespace

void keep_best_and_worst(std::vector<experience::Group>& groups,
                         TokenTable<double>& advantages,
                         TokenTable<float>& scored) {
  for (std::size_t index = 0; index < groups.size(); ++index) {
    auto& samples = groups[index].samples;
    const auto episodes = experience::episodes_of(samples);
    TROUPE_CHECK(episodes.size() >= 2, "a group step refuses smaller groups");
    std::vector<double> ranks;
    for (const experience::Episode& episode : episodes)
      ranks.push_back(rank_of(episode, advantages[index]));
    std::size_t best = 0, worst = 0;
    for (std::size_t i = 1; i < ranks.size(); ++i) {
      if (ranks[i] > ranks[best]) best = i;
      if (ranks[i] < ranks[worst]) worst = i;
    }
    const double mark = best == worst ? 0 : 1;
    if (best == worst) worst = best + 1;
    std::vector<experience::Trajectory> pair;
    std::vector<std::vector<double>> marks;
    std::vector<std::vector<float>> own_scored;
    for (const std::size_t chosen : {best, worst}) {
      const experience::Episode& episode = episodes[chosen];
      const auto place = static_cast<std::uint32_t>(pair.size());
      for (std::size_t i = episode.begin; i < episode.end; ++i) {
        if (!scored.empty()) own_scored.push_back(std::move(scored[index][i]));
        marks.emplace_back(samples[i].tokens.size(), chosen == best ? mark : -mark);
        experience::Trajectory& sample = pair.emplace_back(std::move(samples[i]));
        if (sample.shares)
          sample.shares->sample += place - static_cast<std::uint32_t>(episode.begin);
      }
    }
    if (!scored.empty()) scored[index] = std::move(own_scored);
    samples = std::move(pair);
    advantages[index] = std::move(marks);
  }
}

}  // namespace troupe::learn
