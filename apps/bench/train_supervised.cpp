#include "apps/bench/train_supervised.hpp"

#include "runtime/core/rng.hpp"
#include "runtime/data/supervised_dataset.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/sequence_plan.hpp"

#include <numeric>
#include <utility>
#include <vector>

namespace troupe::app {
namespace {

constexpr std::uint64_t kSupervisedSeed = 20261122;

data::SupervisedDataset random_rows(const TrainJob& job, const model::ModelSpec& spec) {
  core::Rng rng(kSupervisedSeed);
  std::vector<data::TokenRow> rows(static_cast<std::size_t>(job.prompts * (kTimedSteps + 1)));
  for (data::TokenRow& row : rows) {
    row.answer = random_tokens(rng, job.new_tokens, spec.vocab);
    if (job.objective == "sft") continue;
    row.prompt = random_tokens(rng, job.prompt_tokens, spec.vocab);
    row.rejected = random_tokens(rng, job.new_tokens, spec.vocab);
  }
  return data::SupervisedDataset::of_tokens(rows);
}

// The plan of one row; all have the same sizes.
core::Result<model::GroupPlan> plan_of(const TrainJob& job,
                                       const data::SupervisedRow& row,
                                       const model::ModelSpec& spec) {
  model::GroupPlan plan;
  if (job.objective == "sft") {
    const std::vector<model::Sequence> sequence{{row.answer, row.learn}};
    TROUPE_TRY(model::build_sequence_plan(sequence, spec, 1, plan));
    return plan;
  }
  const std::vector<model::SampleGroup> pair{{row.prompt, {row.answer, row.rejected}}};
  const bool scores = job.objective == "rm";
  TROUPE_TRY(model::build_group_plan(
      pair, spec, 1, plan, scores ? model::GroupRows::kLast : model::GroupRows::kPredicting));
  return plan;
}

}  // namespace

core::Result<TrainFigures> time_supervised(const TrainJob& job, core::TeamRunner& team) {
  const bool scores = job.objective == "rm";
  TROUPE_TRY_ASSIGN(master, model::load_model(job.model, scores ? model::HeadKind::kScore
                                                                : model::HeadKind::kLanguage));
  const model::ModelSpec spec = master->spec();
  TROUPE_TRY(check_context(job, spec));
  const data::SupervisedDataset rows = random_rows(job, spec);
  TROUPE_TRY_ASSIGN(plan, plan_of(job, rows.row(0), spec));
  learn::SupervisedSettings settings;
  settings.loss.method = job.objective;
  settings.micro_tokens_max = job.micro_tokens_max;
  settings.total_steps = 100;
  TROUPE_TRY_ASSIGN(trainers, learn::trainers());
  TROUPE_TRY_ASSIGN(trainer, trainers->supervised(std::move(master), nullptr, settings, team));
  TROUPE_TRY(trainer->check(rows));
  std::int64_t micro_batches = 0;
  const auto nothing = [](int) -> core::Result<void> { return {}; };
  const auto step = [&](int i) -> core::Result<void> {
    std::vector<std::uint64_t> chosen(static_cast<std::size_t>(job.prompts));
    std::iota(chosen.begin(), chosen.end(), static_cast<std::uint64_t>(i * job.prompts));
    TROUPE_TRY_ASSIGN(report, trainer->step(rows, chosen));
    micro_batches = report.micro_batches;
    return {};
  };
  TROUPE_TRY_ASSIGN(figures, time_steps(team, nothing, step));
  const bool sequences = job.objective == "sft";  // of new_tokens, without a prompt
  // The reference's forward pass is a part of the step.
  const double passes = settings.loss.method->reference ? 8.0 : 6.0;
  figures.flops = passes * static_cast<double>(job.prompts) *
                  weights_by_rows(spec, plan.plan.rows(),
                                  static_cast<std::int64_t>(plan.plan.logit_rows.size()));
  figures.tokens =
      job.prompts * (sequences ? job.new_tokens : 2 * (job.prompt_tokens + job.new_tokens));
  figures.rows = job.prompts * plan.plan.rows();
  figures.micro_batches = micro_batches;
  return figures;
}

}  // namespace troupe::app
