#include "apps/bench/train_steps.hpp"

#include "apps/bench/figures.hpp"
#include "apps/bench/logged_process.hpp"
#include "apps/bench/machine.hpp"
#include "apps/bench/workload.hpp"
#include "kernels/panels.hpp"
#include "runtime/collective/collectives.hpp"
#include "runtime/data/supervised_dataset.hpp"
#include "runtime/learn/rl/micro_batch.hpp"
#include "runtime/learn/rl/update_context.hpp"
#include "runtime/learn/supervised/answer_groups.hpp"
#include "runtime/learn/supervised/row_checks.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/linears.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/sequence_plan.hpp"
#include "runtime/model/trained_layout.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

namespace troupe::bench {
namespace {

constexpr std::int64_t kCalibration_bytes = std::int64_t{64} << 20;  // only the FMA peak is used
constexpr std::uint64_t kSeed = 20240607, kSupervisedSeed = 20261122;

rusage own_usage() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage;
}

// What this process has cost so far, without wall time.
StepCost used_so_far() {
  return {0.0, processor_seconds(), own_usage().ru_minflt};
}

// The median of each figure separately.
StepCost median_of(const std::vector<StepCost>& steps) {
  std::vector<double> wall, cpu, faults;
  for (const StepCost& step : steps) {
    wall.push_back(step.wall_s);
    cpu.push_back(step.cpu_s);
    faults.push_back(static_cast<double>(step.page_faults));
  }
  return {median(wall), median(cpu), std::llround(median(faults))};
}

double fma_peak(core::TeamRunner& team) {
  return measure_limits(team, kCalibration_bytes, 4).fma_gflops;
}

// Errors: kConfig, when a prompt and its response are longer than the model's context.
core::Result<void> check_context(const TrainJob& job, const model::ModelSpec& spec) {
  if (job.prompt_tokens + job.new_tokens <= spec.context) return {};
  return core::fail(core::ErrorCode::kConfig,
                    "troupe bench train: --prompt-tokens and --new-tokens add up to " +
                        std::to_string(job.prompt_tokens + job.new_tokens) +
                        ", the model has a context of " + std::to_string(spec.context));
}

// Lengths of `count` responses or sequences: evenly from job.shortest to job.new_tokens, in random
// order.
std::vector<std::int64_t> lengths_of(const TrainJob& job, std::int64_t count, core::Rng& rng) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(count), job.new_tokens);
  if (job.shortest == 0 || count < 2) return lengths;
  for (std::int64_t i = 0; i < count; ++i) {
    lengths[static_cast<std::size_t>(i)] =
        job.shortest + (job.new_tokens - job.shortest) * i / (count - 1);
  }
  core::shuffle(lengths, rng);
  return lengths;
}

// Multiply-adds of the matrix products of a forward pass over `rows` rows; the head computes only
// `logit_rows` of them.
double weights_by_rows(const model::ModelSpec& spec, std::int64_t rows, std::int64_t logit_rows) {
  const std::int64_t outputs = spec.head == model::HeadKind::kScore ? 1 : spec.vocab;
  return static_cast<double>(rows) * static_cast<double>(spec.active_weights()) +
         static_cast<double>(logit_rows) * static_cast<double>(spec.hidden * outputs);
}

// Random prompts and responses; half of each group's samples score 1, the others 0.
std::vector<experience::Group> random_groups(const TrainJob& job, const model::ModelSpec& spec) {
  core::Rng rng(kSeed);
  std::vector<experience::Group> groups;
  for (std::int64_t slot = 0; slot < job.prompts; ++slot) {
    experience::Group group;
    group.ticket.slot = static_cast<std::uint32_t>(slot);
    group.prompt = random_tokens(rng, job.prompt_tokens, spec.vocab);
    for (const std::int64_t length : lengths_of(job, job.samples, rng)) {
      experience::Trajectory sample;
      sample.tokens = random_tokens(rng, length, spec.vocab);
      sample.score = group.samples.size() % 2 == 0 ? 1.0 : 0.0;
      group.samples.push_back(std::move(sample));
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

// Fills in what sampling under `weights` would have recorded: log-probs and versions.
core::Result<void> record_behaviour(std::vector<experience::Group>& groups,
                                    const model::PackedWeights& weights,
                                    const learn::TrainerSettings& settings,
                                    core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(update, learn::plan_update(groups, settings.batch));
  const auto temperature = static_cast<float>(settings.algo.temperature);
  model::GroupPlan plan;
  std::vector<std::vector<std::vector<float>>> scored(groups.size());
  for (const learn::MiniBatch& mini : update.mini_batches) {
    for (const learn::MicroBatch& micro : mini.micro_batches) {
      TROUPE_TRY(learn::plan_micro_batch(groups, micro, weights.spec(), team, plan));
      learn::scatter_scored(
          groups, micro, model::score_logprobs(team, weights, plan.plan, plan.targets, temperature),
          scored);
    }
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t i = 0; i < groups[g].samples.size(); ++i) {
      experience::Trajectory& sample = groups[g].samples[i];
      sample.behaviour = std::move(scored[g][i]);
      sample.versions = experience::VersionRuns::all(weights.version(), sample.tokens.size());
    }
  }
  return {};
}

// Floating-point operations of the matrix products that train on `rows` rows: for each weight and
// row 2 forward, 2 for the gradient of its input and 2 for its own. With adapters the last are
// thin products instead, 4 rank (rows + columns) for each linear map and row. Attention, the merge
// of adapters, and what the backward pass computes a second time are not counted.
double training_flops(const model::ModelSpec& spec,
                      std::int64_t lora_rank,
                      std::int64_t rows,
                      std::int64_t logit_rows) {
  const double weights = weights_by_rows(spec, rows, logit_rows);
  if (lora_rank == 0) return 6.0 * weights;
  std::int64_t sides = 0;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    for (const model::Linear linear : model::kAllLinears) {
      if (!model::has_linear(spec, layer, linear)) continue;
      const model::LinearShape shape = model::shape_of(spec, linear);
      sides += shape.rows + shape.columns;
    }
  }
  return 4.0 * weights + 4.0 * static_cast<double>(lora_rank * rows) * static_cast<double>(sides);
}

// The matrix products of one update, in operations.
core::Result<double> product_flops(const std::vector<experience::Group>& groups,
                                   const model::ModelSpec& spec,
                                   const learn::TrainerSettings& settings,
                                   std::int64_t lora_rank) {
  TROUPE_TRY_ASSIGN(update, learn::plan_update(groups, settings.batch));
  model::GroupPlan plan;
  double flops = 0;
  for (const learn::MiniBatch& mini : update.mini_batches) {
    for (const learn::MicroBatch& micro : mini.micro_batches) {
      const auto rows = learn::sample_rows(groups, micro);
      TROUPE_TRY(model::build_group_plan(rows.groups, spec, 1, plan));
      flops += training_flops(spec, lora_rank, plan.plan.rows(),
                              static_cast<std::int64_t>(plan.plan.logit_rows.size()));
    }
  }
  return flops;
}

using StepCall = std::function<core::Result<void>(int)>;

// Bytes that this rank has sent to others so far.
double sent_so_far(const TrainJob& job) {
  return job.gang.gang == nullptr ? 0.0 : static_cast<double>(job.gang.gang->sent_bytes());
}

// Numbers of the trained part, with the room between tensors.
core::Result<std::int64_t> trained_numbers(const model::ModelSpec& spec,
                                           const learn::OptimSettings& optim) {
  if (optim.trained.everything()) return model::ParamLayout(spec).total;
  TROUPE_TRY_ASSIGN(layout, model::trained_layout(spec, optim.trained, "actor"));
  return layout->total;
}

// For i from 0 to kTimedSteps calls `before(i)`, which is not timed, and `step(i)`; i = 0 warms up.
// Fills in the figures except `flops` and the counts.
core::Result<TrainFigures> time_steps(const TrainJob& job,
                                      core::TeamRunner& team,
                                      const StepCall& before,
                                      const StepCall& step) {
  TrainFigures figures;
  figures.fma_gflops = fma_peak(team);
  std::vector<StepCost> costs;
  std::vector<double> sent;
  for (int i = 0; i <= kTimedSteps; ++i) {
    TROUPE_TRY(before(i));
    const StepCost used = used_so_far();
    const double sent_before = sent_so_far(job);
    const Stopwatch watch;
    TROUPE_TRY(step(i));
    const double wall_s = watch.seconds();
    const StepCost now = used_so_far();
    const StepCost cost{wall_s, now.cpu_s - used.cpu_s, now.page_faults - used.page_faults};
    if (i == 0) {
      figures.first_page_faults = cost.page_faults;
    } else {
      costs.push_back(cost);
      sent.push_back(sent_so_far(job) - sent_before);
    }
    figures.peak_mb = std::max(figures.peak_mb, pss_mb());
  }
  figures.rss_mb = static_cast<double>(own_usage().ru_maxrss) / 1024.0;  // given in KiB
  figures.fma_gflops = std::max(figures.fma_gflops, fma_peak(team));
  figures.cost = median_of(costs);
  figures.sent_bytes = median(sent);
  return figures;
}

// Rows of a step that have one prompt; a sequence is alone.
std::int64_t rows_of_prompt(const TrainJob& job) {
  return job.objective == "sft" ? 1 : job.samples - 1;
}

data::SupervisedDataset random_rows(const TrainJob& job, const model::ModelSpec& spec) {
  core::Rng rng(kSupervisedSeed);
  std::vector<data::TokenRow> rows;
  for (int step = 0; step <= kTimedSteps; ++step) {
    for (const std::int64_t length : lengths_of(job, job.prompts, rng)) {
      data::TokenRow row;
      row.answer = random_tokens(rng, length, spec.vocab);
      if (job.objective != "sft") row.prompt = random_tokens(rng, job.prompt_tokens, spec.vocab);
      for (std::int64_t i = 0; i < rows_of_prompt(job); ++i) {
        if (job.objective != "sft") row.rejected = random_tokens(rng, length, spec.vocab);
        rows.push_back(row);
      }
    }
  }
  return data::SupervisedDataset::of_tokens(rows);
}

// The plan of rows that have one prompt.
core::Result<model::GroupPlan> plan_of(const TrainJob& job,
                                       std::span<const data::SupervisedRow> rows,
                                       const model::ModelSpec& spec) {
  model::GroupPlan plan;
  if (job.objective == "sft") {
    const std::vector<model::Sequence> sequence{{rows.front().answer, rows.front().learn}};
    TROUPE_TRY(model::build_sequence_plan(sequence, spec, 1, plan));
    return plan;
  }
  const learn::Chosen<learn::Method> method(job.objective);
  TROUPE_TRY(model::build_group_plan(learn::group_answers(rows).groups, spec, 1, plan,
                                     learn::group_rows(*method)));
  return plan;
}

}  // namespace

core::Result<learn::OptimSettings> train_optim(const TrainJob& job) {
  learn::OptimSettings optim;
  optim.trained.lora.rank = job.lora_rank;
  optim.lanes = job.lanes;
  optim.ranks = job.gang;
  const bool known = kernels::parse_panel_dtype(job.dtype, optim.panels);
  const bool pairs_on_cpu =
      optim.panels == kernels::PanelDtype::kBf16Compute && job.device == "cpu";
  if (known && optim.panels != kernels::PanelDtype::kInt8 && !pairs_on_cpu) return optim;
  return core::fail(core::ErrorCode::kConfig, "troupe bench train: --dtype " + job.dtype,
                    "training computes in f32, bf16 or, with --device cuda, bf16-compute");
}

core::Result<TrainFigures> time_policy(const TrainJob& job,
                                       const learn::TrainerSettings& settings,
                                       std::vector<experience::Group>& groups,
                                       core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(master, model::load_model(job.model));
  TROUPE_TRY(check_context(job, master->spec()));
  groups = random_groups(job, master->spec());
  TROUPE_TRY_ASSIGN(flops, product_flops(groups, master->spec(), settings, job.lora_rank));
  TROUPE_TRY_ASSIGN(trainers, learn::trainers());
  TROUPE_TRY_ASSIGN(trainer, trainers->policy(std::move(master), settings, team));
  std::unique_ptr<learn::CriticTrainer> critic;
  if (job.objective == "ppo") {
    TROUPE_TRY_ASSIGN(scores, model::load_model(job.model, model::HeadKind::kScore, 1));
    TROUPE_TRY_ASSIGN(critic_flops, product_flops(groups, scores->spec(), settings, 0));
    flops += critic_flops * 8.0 / 6.0;  // a forward pass for the values, and an update
    learn::CriticSettings of_critic;
    of_critic.batch = settings.batch;
    of_critic.optim.lanes = job.lanes;
    of_critic.optim.ranks = job.gang;  // used in turn with the policy, on this thread
    of_critic.total_steps = settings.total_steps;
    TROUPE_TRY_SET(critic, trainers->critic(std::move(scores), of_critic, team));
  }
  learn::UpdateReport last;
  const auto sample = [&](int i) -> core::Result<void> {
    for (experience::Group& group : groups)
      group.ticket.update = static_cast<std::uint64_t>(i);
    TROUPE_TRY(trainer->gather());
    return record_behaviour(groups, *trainer->packed(), settings, team);
  };
  const auto update = [&](int) -> core::Result<void> {
    if (critic == nullptr) {
      TROUPE_TRY_SET(last, trainer->update(groups));
      return {};
    }
    TROUPE_TRY_ASSIGN(values, critic->values(groups));
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (std::size_t i = 0; i < groups[g].samples.size(); ++i)
        groups[g].samples[i].values = values[g][i];
    }
    TROUPE_TRY_ASSIGN(targets, trainer->prepare(groups));
    TROUPE_TRY(critic->update(groups, values, targets.returns));
    TROUPE_TRY_SET(last, trainer->learn());
    return {};
  };
  TROUPE_TRY_ASSIGN(figures, time_steps(job, team, sample, update));
  const model::ModelSpec& trained = trainer->master().spec();
  TROUPE_TRY_SET(figures.trained, trained_numbers(trained, settings.optim));
  figures.embedding = trained.vocab * trained.hidden;
  figures.flops = flops;
  figures.tokens = last.policy_tokens;
  figures.rows = last.rows;
  figures.micro_batches = last.micro_batches;
  return figures;
}

core::Result<TrainFigures> time_supervised(const TrainJob& job, core::TeamRunner& team) {
  const bool scores = job.objective == "rm";
  TROUPE_TRY_ASSIGN(master, model::load_model(job.model, scores ? model::HeadKind::kScore
                                                                : model::HeadKind::kLanguage));
  const model::ModelSpec spec = master->spec();
  TROUPE_TRY(check_context(job, spec));
  const data::SupervisedDataset rows = random_rows(job, spec);
  learn::SupervisedSettings settings;
  TROUPE_TRY_SET(settings.optim, train_optim(job));
  settings.loss.method = job.objective;
  settings.micro_tokens_max = job.micro_tokens_max;
  settings.total_steps = 100;
  TROUPE_TRY_ASSIGN(trainers, learn::trainers());
  TROUPE_TRY_ASSIGN(trainer, trainers->supervised(std::move(master), nullptr, settings, team));
  TROUPE_TRY(learn::check_rows(rows, settings));
  std::int64_t micro_batches = 0;
  const auto nothing = [](int) -> core::Result<void> { return {}; };
  const auto step = [&](int i) -> core::Result<void> {
    const std::int64_t count = job.prompts * rows_of_prompt(job);
    std::vector<std::uint64_t> chosen(static_cast<std::size_t>(count));
    std::iota(chosen.begin(), chosen.end(), static_cast<std::uint64_t>(i * count));
    TROUPE_TRY_ASSIGN(report, trainer->step(rows.rows(chosen)));
    micro_batches = report.micro_batches;
    return {};
  };
  TROUPE_TRY_ASSIGN(figures, time_steps(job, team, nothing, step));
  TROUPE_TRY_SET(figures.trained, trained_numbers(spec, settings.optim));
  figures.embedding = spec.vocab * spec.hidden;
  for (std::int64_t i = 0; i < job.prompts; ++i) {  // every step has rows of the same sizes
    std::vector<data::SupervisedRow> own;
    for (std::int64_t j = 0; j < rows_of_prompt(job); ++j)
      own.push_back(rows.row(static_cast<std::uint64_t>(i * rows_of_prompt(job) + j)));
    TROUPE_TRY_ASSIGN(plan, plan_of(job, own, spec));
    const std::int64_t count = plan.plan.rows();
    const auto logit_rows = static_cast<std::int64_t>(plan.plan.logit_rows.size());
    figures.flops += training_flops(spec, job.lora_rank, count, logit_rows);
    // With a reference, its forward pass is part of the step.
    if (settings.loss.method->reference)
      figures.flops += 2.0 * weights_by_rows(spec, count, logit_rows);
    figures.rows += count;
    // A pair's prompt counts for both answers; a sequence has none.
    for (const data::SupervisedRow& row : own)
      figures.tokens += row.tokens() + std::ssize(row.prompt);
  }
  figures.micro_batches = micro_batches;
  return figures;
}

}  // namespace troupe::bench
