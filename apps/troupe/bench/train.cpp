// Flags, timed updates of learn::PolicyTrainer, the report.
#include "apps/troupe/bench/train.hpp"

#include "apps/troupe/bench/train_job.hpp"
#include "apps/troupe/bench/train_phases.hpp"
#include "apps/troupe/flags.hpp"
#include "apps/troupe/system_facts.hpp"
#include "kernels/calibrate.hpp"
#include "kernels/ops.hpp"
#include "runtime/async/cpu_pool.hpp"
#include "runtime/model/params.hpp"

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

namespace troupe::app {
namespace {

using core::ErrorCode;
using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int kRepetitions = 3;
constexpr std::int64_t kCalibration_bytes = std::int64_t{64} << 20;  // only its FMA peak is used

struct Updates {
  double update_s = 0;  // median
  double flops = 0;     // of one update's products
  double fma_gflops = 0;
  double peak_mb = 0;
  learn::UpdateReport last;
};

double peak_mb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;  // given in KiB
}

double fma_peak(core::TeamRunner& team) {
  kernels::Calibration calibration(kernels::ops(), kCalibration_bytes);
  double gflops = 0;
  team.run([&](core::Team member) {
    const kernels::MachineLimits limits = calibration.measure(member);
    if (member.rank == 0) gflops = limits.fma_gflops;
  });
  return gflops;
}

core::Result<void> check_context(const TrainJob& job, const model::ModelSpec& spec) {
  if (job.prompt_tokens + job.new_tokens <= spec.context) return {};
  return core::fail(ErrorCode::kConfig,
                    "troupe bench train: --prompt-tokens and --new-tokens add up to " +
                        std::to_string(job.prompt_tokens + job.new_tokens) +
                        ", the model has a context of " + std::to_string(spec.context));
}

// One update that is not counted, then the timed ones; the multiply-add peak before and after.
core::Result<Updates> time_updates(const TrainJob& job,
                                   const learn::TrainerSettings& settings,
                                   std::vector<learn::TrainGroup>& groups,
                                   core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(master, model::load_model(job.model));
  TROUPE_TRY(check_context(job, master->spec()));
  groups = random_groups(job, master->spec());
  Updates result;
  TROUPE_TRY_ASSIGN(flops, product_flops(groups, master->spec(), settings));
  result.flops = flops;
  TROUPE_TRY_ASSIGN(trainer, learn::PolicyTrainer::create(std::move(master), settings, team));
  result.fma_gflops = fma_peak(team);
  std::vector<double> seconds;
  for (int i = 0; i <= kRepetitions; ++i) {
    for (learn::TrainGroup& group : groups)
      group.ticket.update = static_cast<std::uint64_t>(i);
    TROUPE_TRY(record_behaviour(groups, *trainer->packed(), settings, team));
    const Clock::time_point start = Clock::now();
    TROUPE_TRY_ASSIGN(report, trainer->update(groups));
    const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    if (i > 0) seconds.push_back(elapsed);
    result.last = std::move(report);
  }
  result.peak_mb = peak_mb();
  result.fma_gflops = std::max(result.fma_gflops, fma_peak(team));
  result.update_s = median(std::move(seconds));
  return result;
}

ordered_json line_of(const TrainJob& job, const Updates& updates, const TrainPhases& phases) {
  const double gflops = updates.flops / updates.update_s * 1e-9;
  const auto per_second = [&](std::int64_t count) {
    return static_cast<double>(count) / updates.update_s;
  };
  return {{"bench", "train"},
          {"model", job.model},
          {"objective", job.objective},
          {"dtype", "f32"},
          {"isa", kernels::ops().name},
          {"threads", job.threads},
          {"prompts", job.prompts},
          {"samples", job.samples},
          {"prompt_tokens", job.prompt_tokens},
          {"new_tokens", job.new_tokens},
          {"micro_tokens_max", job.micro_tokens_max},
          {"micro_batches", updates.last.micro_batches},
          {"rows", updates.last.rows},
          {"tokens", updates.last.policy_tokens},
          {"tokens_per_s", per_second(updates.last.policy_tokens)},
          {"rows_per_s", per_second(updates.last.rows)},
          {"share_of_fma", gflops / updates.fma_gflops},
          {"gflops", gflops},
          {"fma_gflops", updates.fma_gflops},
          {"peak_mb", updates.peak_mb},
          {"update_s", updates.update_s},
          {"forward_s", phases.forward_s},
          {"backward_s", phases.backward_s},
          {"optimizer_s", phases.optimizer_s}};
}

void print_for_people(const TrainJob& job, const Updates& updates, const TrainPhases& phases) {
  const double gflops = updates.flops / updates.update_s * 1e-9;
  std::printf("%s, %s kernels, %lld threads: %.1f tokens/s, %.0f %% of the multiply-add peak\n",
              job.objective.c_str(), kernels::ops().name, static_cast<long long>(job.threads),
              static_cast<double>(updates.last.policy_tokens) / updates.update_s,
              100.0 * gflops / updates.fma_gflops);
  std::printf("  update    %.3f s for %lld tokens in %lld rows, %lld micro-batches\n",
              updates.update_s, static_cast<long long>(updates.last.policy_tokens),
              static_cast<long long>(updates.last.rows),
              static_cast<long long>(updates.last.micro_batches));
  std::printf("  forward   %.3f s\n  backward  %.3f s\n  optimizer %.3f s\n", phases.forward_s,
              phases.backward_s, phases.optimizer_s);
  std::printf("  %.1f of %.1f GFLOP/s, peak memory %.0f MiB\n", gflops, updates.fma_gflops,
              updates.peak_mb);
}

}  // namespace

core::Result<void> bench_train(Words words) {
  TrainJob job;
  bool json = false;
  TROUPE_TRY_ASSIGN(
      outcome,
      parse_flags("troupe bench train: time one policy update on random samples, medians of 3",
                  {{"--model", &job.model, "model folder, or org/name in the local cache", true},
                   {"--objective", &job.objective, "grpo, dr_grpo, rloo or reinforce_baseline"},
                   {"--prompts", &job.prompts, "groups of one update", false, 1, 4096},
                   {"--samples", &job.samples, "samples of one prompt", false, 2, 4096},
                   {"--prompt-tokens", &job.prompt_tokens, "of a prompt", false, 1, 1e6},
                   {"--new-tokens", &job.new_tokens, "of a response", false, 1, 1e6},
                   {"--micro-tokens-max", &job.micro_tokens_max,
                    "rows of a micro-batch, as train.micro_tokens_max", false, 16, 1e6},
                   {"--threads", &job.threads, "0 = all cores", false, 0, 1024},
                   {"--json", &json, "one JSON line"}},
                  words));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(settings, trainer_settings(job));
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(job.model));
  job.model = folder.string();
  if (job.threads == 0) job.threads = usable_cores();
  kernels::flush_denormals();
  async::CpuPool pool(static_cast<int>(job.threads), kernels::flush_denormals);
  std::vector<learn::TrainGroup> groups;
  TROUPE_TRY_ASSIGN(updates, time_updates(job, settings, groups, pool));
  TROUPE_TRY_ASSIGN(phases, measure_phases(job, settings, groups, kRepetitions, pool));
  if (json) {
    std::printf("%s\n", line_of(job, updates, phases).dump().c_str());
  } else {
    print_for_people(job, updates, phases);
  }
  return {};
}

}  // namespace troupe::app
