#include "runtime/learn/rl/critic_trainer.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"
#include "runtime/learn/loss/objective.hpp"
#include "runtime/learn/model/trainable_model.hpp"
#include "runtime/learn/ranks/input_crc.hpp"
#include "runtime/learn/ranks/rank_group.hpp"
#include "runtime/learn/rl/micro_batch.hpp"
#include "runtime/learn/rl/update_context.hpp"
#include "runtime/learn/rl/value_loss.hpp"
#include "runtime/learn/torch/step_failure.hpp"
#include "runtime/model/score.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

namespace troupe::learn {
namespace {

core::Result<void> check_fit(const std::vector<experience::Group>& groups,
                             const TokenValues& lists,
                             const char* what) {
  bool fits = lists.size() == groups.size();
  for (std::size_t g = 0; fits && g < groups.size(); ++g) {
    fits = lists[g].size() == groups[g].samples.size();
    for (std::size_t i = 0; fits && i < lists[g].size(); ++i) {
      fits = lists[g][i].size() == groups[g].samples[i].tokens.size();
    }
  }
  if (fits) return {};
  return core::fail(ErrorCode::kInvalidArgument,
                    std::string("the critic's ") + what + " are not one per token of the update");
}

// The entries of `lists` for a micro-batch's tokens, in the order of its targets.
std::vector<double> entries_of(const TokenValues& lists, const MicroBatch& micro) {
  std::vector<double> flat;
  for (const GroupPart& part : micro.parts) {
    for (std::size_t i = part.sample_begin; i < part.sample_end; ++i) {
      const auto& list = lists[part.group][i];
      flat.insert(flat.end(), list.begin(), list.end());
    }
  }
  return flat;
}

std::vector<double> flatten(const TokenValues& lists) {
  std::vector<double> flat;
  for (const auto& group : lists) {
    for (const auto& sample : group)
      flat.insert(flat.end(), sample.begin(), sample.end());
  }
  return flat;
}

std::string name_of(const std::vector<experience::Group>& groups, const MiniBatch& mini) {
  const auto& first = groups[mini.micro_batches.front().parts.front().group];
  const auto& last = groups[mini.micro_batches.back().parts.back().group];
  return experience::name_of(first.ticket) + " to " + experience::name_of(last.ticket);
}

// What a micro-batch tells about itself.
struct ValueFigures {
  double loss = 0;
  ValueStats stats;
};

struct Totals {
  ValueStats stats;
  std::int64_t steps = 0, skipped = 0;
  double loss = 0, grad_norm = 0, lr = 0;
};

class CriticTrainerImpl final : public CriticTrainer {
 public:
  CriticTrainerImpl(std::unique_ptr<TrainableModel> model, CriticSettings settings)
      : settings_(settings), model_(std::move(model)) {}

  core::Result<TokenValues> values(const std::vector<experience::Group>& groups) override {
    model_->team().run([](core::Team) { kernels::flush_denormals(); });
    // Values do not depend on the plan, so ranks may have one that gives work to each.
    const Dealing dealing{.lanes = count_of(settings_.optim.ranks)};
    TROUPE_TRY_ASSIGN(
        plan,
        plan_update(groups, {.micro_tokens_max = settings_.batch.micro_tokens_max}, {}, dealing));
    const auto& micro_batches = plan.mini_batches.front().micro_batches;
    const auto weights = model_->pass_weights();
    std::vector<std::size_t> counts;
    for (const MicroBatch& micro : micro_batches)
      counts.push_back(static_cast<std::size_t>(micro.tokens));
    TROUPE_TRY_ASSIGN(all, share_parts<float>(
                               model_->ranks(), counts,
                               [&](std::size_t i, auto& to) {
                                 return add_values(*weights, groups, micro_batches[i], to);
                               },
                               model_->passes()));
    TokenValues result(groups.size());
    auto next = all.begin();
    for (const MicroBatch& micro : micro_batches) {
      const std::vector<float> flat(next, next + static_cast<std::ptrdiff_t>(micro.tokens));
      next += static_cast<std::ptrdiff_t>(micro.tokens);
      if (!std::all_of(flat.begin(), flat.end(),
                       [](float value) { return std::isfinite(value); })) {
        return core::fail(ErrorCode::kNumeric,
                          "the critic's value of a token in the micro-batch of " +
                              experience::name_of(groups[micro.parts.front().group].ticket) +
                              " is not finite",
                          "lower --critic.adam.lr");
      }
      scatter_scored(groups, micro, flat, result);
    }
    return result;
  }

  core::Result<CriticReport> update(const std::vector<experience::Group>& groups,
                                    const TokenValues& old,
                                    const TokenValues& returns) override {
    model_->team().run([](core::Team) { kernels::flush_denormals(); });
    TROUPE_TRY(check_fit(groups, old, "values"));
    TROUPE_TRY(check_fit(groups, returns, "returns"));
    if (RankGroup* const ranks = model_->ranks()) {
      const InputCrc given = InputCrc().add(groups).add(old).add(returns);
      TROUPE_TRY(ranks->all_same(given.value()));
    }
    TROUPE_TRY_ASSIGN(plan, plan_update(groups, settings_.batch, {}, {.lanes = model_->lanes()}));
    ValueBatch batch;
    batch.weight = Chosen<Reducer>("token_mean")->weight(plan.counts(), 1, 1);
    Totals totals;
    for (std::int64_t epoch = 0; epoch < settings_.batch.max_epochs; ++epoch) {
      for (const MiniBatch& mini : plan.mini_batches) {
        ValueStats stats;
        const std::vector<StepPart> parts(mini.micro_batches.size());
        const auto accumulate = [&](const model::PackedWeights& weights) -> core::Result<double> {
          const auto run_part = [&](std::size_t part) -> core::Result<ValueFigures> {
            const MicroBatch& micro = mini.micro_batches[part];
            TROUPE_TRY(plan_micro_batch(groups, micro, weights.spec(), model_->team(), plan_));
            batch.old = entries_of(old, micro);
            batch.returns = entries_of(returns, micro);
            return run(weights, batch);
          };
          TROUPE_TRY_ASSIGN(figures, model_->run_parts<ValueFigures>(parts, run_part));
          double sum = 0;
          for (const ValueFigures& part : figures) {
            sum += part.loss;
            stats.tokens += part.stats.tokens;
            stats.clipped += part.stats.clipped;
          }
          return sum;
        };
        TROUPE_TRY_ASSIGN(step, model_->step(accumulate, [&] { return name_of(groups, mini); }));
        ++totals.steps;
        totals.lr = step.lr;
        totals.skipped += step.applied ? 0 : 1;
        if (!step.applied) continue;
        totals.loss += step.loss;
        totals.grad_norm += step.grad_norm;
        totals.stats.tokens += stats.tokens;
        totals.stats.clipped += stats.clipped;
      }
    }
    return report(totals, old, returns);
  }

  core::Result<void> gather() override { return model_->gather(); }
  const model::ParamStore& master() const override { return model_->master(); }
  core::Version version() const override { return model_->version(); }
  core::Result<void> save_model(const std::filesystem::path& folder,
                                const std::filesystem::path& tokenizer_from) const override {
    return model_->save_model({folder, settings_.save_dtype, tokenizer_from});
  }
  core::Result<void> save_state(const std::filesystem::path& folder) const override {
    return model_->save_state(folder);
  }
  core::Result<void> load_state(const std::filesystem::path& folder) override {
    return model_->load_state(folder);
  }

 private:
  // Appends the values of the micro-batch's tokens under `weights`.
  core::Result<void> add_values(const model::PackedWeights& weights,
                                const std::vector<experience::Group>& groups,
                                const MicroBatch& micro,
                                std::vector<float>& to) {
    TROUPE_TRY(plan_micro_batch(groups, micro, weights.spec(), model_->team(), plan_));
    std::vector<float> rows(plan_.plan.logit_rows.size());
    model::score_values(model_->team(), weights, plan_.plan, scratch_, rows);
    for (const std::int32_t row : plan_.targets.row) {
      const double head = rows[static_cast<std::size_t>(row)];
      to.push_back(static_cast<float>(settings_.scale * head + settings_.shift));
    }
    return {};
  }

  // The figures of the planned micro-batch. If its loss is finite, adds its gradient to the
  // model's.
  core::Result<ValueFigures> run(const model::PackedWeights& weights, const ValueBatch& batch) {
    try {
      const c10::AutoGradMode with_grad(true);
      const at::Tensor rows = model_->forward().values(weights, plan_.plan);
      const at::Tensor targets =
          at::from_blob(plan_.targets.row.data(), {plan_.targets.size()}, at::kInt).to(at::kLong);
      const at::Tensor values =
          rows.to(at::kDouble).index_select(0, targets) * settings_.scale + settings_.shift;
      ValueFigures figures;
      const at::Tensor loss = value_loss(settings_.value_clip, batch, values, figures.stats);
      figures.loss = loss.item<double>();
      if (std::isfinite(figures.loss)) loss.backward();
      return figures;
    } catch (const std::exception& error) {
      return step_failure(error, "in the critic");
    }
  }

  CriticReport report(const Totals& totals,
                      const TokenValues& old,
                      const TokenValues& returns) const {
    CriticReport report;
    report.version = version();
    auto& rows = report.metrics;
    const auto applied = static_cast<double>(totals.steps - totals.skipped);
    if (applied > 0) {
      rows.emplace_back("value/loss", totals.loss / applied);
      rows.emplace_back("value/clipfrac", static_cast<double>(totals.stats.clipped) /
                                              static_cast<double>(totals.stats.tokens));
      rows.emplace_back("value/grad_norm", totals.grad_norm / applied);
    }
    const double explained = explained_variance(flatten(old), flatten(returns));
    if (std::isfinite(explained)) rows.emplace_back("value/explained_var", explained);
    rows.emplace_back("value/lr", totals.lr);
    rows.emplace_back("value/skipped_steps", static_cast<double>(totals.skipped));
    return report;
  }

  CriticSettings settings_;
  std::unique_ptr<TrainableModel> model_;
  model::GroupPlan plan_;
  model::ScoreScratch scratch_;
};

}  // namespace

core::Result<std::unique_ptr<CriticTrainer>> CriticTrainer::create(
    std::unique_ptr<model::ParamStore> master, CriticSettings settings, core::TeamRunner& team) {
  TROUPE_TRY(require(settings.value_clip >= 0, "critic.value_clip", "at least 0"));
  TROUPE_TRY_ASSIGN(trained, TrainableModel::create(std::move(master), settings.optim,
                                                    settings.total_steps, team, "critic"));
  std::unique_ptr<CriticTrainer> trainer =
      std::make_unique<CriticTrainerImpl>(std::move(trained), settings);
  return trainer;
}

}  // namespace troupe::learn
