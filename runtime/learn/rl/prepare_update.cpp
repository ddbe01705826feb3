#include "runtime/learn/rl/prepare_update.hpp"

#include "runtime/experience/episodes.hpp"
#include "runtime/learn/ranks/rank_group.hpp"
#include "runtime/learn/rl/own_advantage.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe::learn {
namespace {

core::Result<void> check_algo(const AlgoSettings& algo) {
  TROUPE_TRY(require(algo.temperature > 0, "rollout.temperature", "above 0 in training"));
  TROUPE_TRY(require(algo.eps_clip_low() >= 0 && algo.eps_clip_high() >= 0, "actor.eps_clip",
                     "at least 0"));
  TROUPE_TRY(require(algo.correction_max > 0, "algo.correction_max", "above 0"));
  TROUPE_TRY(require(algo.reward_clip_low <= algo.reward_clip_high, "reward.clip_range",
                     "two values in ascending order"));
  const double weight = algo.reducer->weight({}, 1, algo.reducer_tokens());
  TROUPE_TRY(require(algo.reducer_constant >= 0 && std::isfinite(weight), "algo.reducer_constant",
                     "above 0"));
  const auto refused = refusal(algo);
  if (!refused) return {};
  return core::fail(ErrorCode::kConfig, refused->key + ": " + refused->why, refused->advice);
}

core::Result<void> check_texts(const TrainerSettings& settings) {
  if (settings.ptx == nullptr) return {};
  TROUPE_TRY(require(!settings.ptx->texts.empty(), "data.pretrain_dataset", "not empty"));
  TROUPE_TRY(require(settings.ptx->coef >= 0, "actor.ptx_coef", "at least 0"));
  for (const auto& text : settings.ptx->texts) {
    TROUPE_TRY(require(text.size() >= 2, "data.pretrain_dataset", "texts of two tokens and more"));
    const auto rows = static_cast<std::int64_t>(text.size()) - 1;
    TROUPE_TRY(require(rows <= settings.batch.micro_tokens_max, "train.micro_tokens_max",
                       "as large as the longest text of data.pretrain_dataset"));
  }
  return {};
}

// The two samples of an online-DPO pair must fit into one micro-batch together.
core::Result<void> check_pairs(const std::vector<experience::Group>& groups,
                               std::int64_t rows_max) {
  for (const experience::Group& group : groups) {
    const std::int64_t rows = part_rows(group, 0, group.samples.size());
    if (rows <= rows_max) continue;
    return core::fail(ErrorCode::kConfig,
                      "the best and worst sample of " + experience::name_of(group.ticket) +
                          " need " + std::to_string(rows) +
                          " rows with their prompt, a micro-batch holds " +
                          std::to_string(rows_max),
                      "raise --train.micro_tokens_max");
  }
  return {};
}

// Over episodes.
double mean_score(const std::vector<experience::Group>& groups) {
  double sum = 0, count = 0;
  for (const std::size_t index : by_ticket(groups)) {
    const auto& samples = groups[index].samples;
    for (const experience::Episode& episode : experience::episodes_of(samples)) {
      sum += experience::episode_total(samples, episode);
      ++count;
    }
  }
  return count == 0 ? 0 : sum / count;
}

// Plans the micro-batches. A group whose advantages are all zero learns only from other terms of
// the loss; without such a term it has no gradient.
core::Result<void> plan_learning(const TrainerSettings& settings, UpdateContext& update) {
  const AlgoSettings& algo = settings.algo;
  const bool other_terms = (algo.kl.init_coef != 0 && algo.kl.use_loss) || algo.entropy_coef != 0 ||
                           settings.optim.aux_loss_coef != 0;
  std::vector<bool> learns;
  for (const auto& group : update.advantages) {
    bool any = false;
    for (const auto& sample : group) {
      any = any || std::any_of(sample.begin(), sample.end(), [](double a) { return a != 0; });
    }
    if (algo.objective->pairs && any) ++update.pairs;
    learns.push_back(any || other_terms);
  }
  const Dealing dealing{settings.optim.lanes, algo.objective->pairs};
  TROUPE_TRY_SET(update.plan, plan_update(update.groups, settings.batch, learns, dealing));
  if (!algo.objective->pairs) return {};
  return check_pairs(update.groups, settings.batch.micro_tokens_max);
}

ExperienceNeeds needs_of(const AlgoSettings& algo) {
  return {algo.needs_reference(), algo.needs_teacher(), algo.advantage.estimator->has_critic};
}

}  // namespace

core::Result<void> check_settings(const TrainerSettings& settings) {
  TROUPE_TRY(check_algo(settings.algo));
  TROUPE_TRY(require(settings.batch.micro_tokens_max >= 1, "train.micro_tokens_max", "at least 1"));
  TROUPE_TRY(require(settings.batch.max_epochs >= 1, "train.max_epochs", "at least 1"));
  TROUPE_TRY(require(settings.batch.mini_batches >= 1, "train.batch_size",
                     "at most the samples of an update"));
  TROUPE_TRY(check_texts(settings));
  return require(settings.ema_beta < 1, "train.ema_beta", "below 1");
}

core::Result<UpdateContext> prepare_update(const TrainerSettings& settings,
                                           core::Version start,
                                           std::vector<experience::Group> groups,
                                           const ScoreStart& score,
                                           RunningMoments& moments,
                                           RankGroup* ranks) {
  const AlgoSettings& algo = settings.algo;
  UpdateContext update;
  TROUPE_TRY_SET(update.staleness, check_experience(groups, start, needs_of(algo)));
  update.groups = std::move(groups);
  update.start = start;
  update.score = mean_score(update.groups);
  const std::int64_t steps =
      settings.batch.max_epochs *
      std::min(settings.batch.mini_batches, static_cast<std::int64_t>(update.groups.size()));
  const bool on_policy = update.staleness.on_policy();
  update.anchor = anchor_source(algo.objective, on_policy, steps, start_needed(algo));
  if (scores_start(algo, on_policy, steps)) {
    // Log-probs do not depend on the plan, so ranks may have one that gives work to each.
    const Dealing dealing{.lanes = count_of(settings.optim.ranks)};
    TROUPE_TRY_ASSIGN(all, plan_update(update.groups, settings.batch, {}, dealing));
    TROUPE_TRY_SET(update.scored, score(update.groups, all));
  }
  TROUPE_TRY_ASSIGN(found, update_advantages(algo, update.groups, update.scored, moments));
  update.advantages = std::move(found.tokens);
  update.returns = std::move(found.returns);
  update.kl_of_sample = found.kl_of_sample;
  update.kl_teacher = found.kl_teacher;
  if (algo.own_advantage) TROUPE_TRY(apply_own_advantage(settings.advantage.get(), ranks, update));
  if (algo.objective->pairs) {
    keep_best_and_worst(update.groups, update.advantages, update.scored);
  }
  if (algo.correction.type->masks_update) {
    update.keep = update_mask(update.groups, update.scored, algo.correction.high);
  }
  TROUPE_TRY(plan_learning(settings, update));
  return update;
}

}  // namespace troupe::learn
