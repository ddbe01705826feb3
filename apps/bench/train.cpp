#include "apps/bench/bench.hpp"
#include "apps/bench/train_phases.hpp"
#include "apps/bench/train_policy.hpp"
#include "apps/bench/train_supervised.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/placement.hpp"
#include "kernels/ops.hpp"
#include "runtime/model/params.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <utility>

namespace troupe::app {
namespace {

using nlohmann::ordered_json;

ordered_json line_of(const TrainJob& job, const TrainFigures& figures) {
  const double gflops = figures.flops / figures.cost.wall_s * 1e-9;
  const double cpu_gflops =
      figures.flops / figures.cost.cpu_s * 1e-9 * static_cast<double>(job.threads);
  const auto per_second = [&](std::int64_t count) {
    return static_cast<double>(count) / figures.cost.wall_s;
  };
  return {{"bench", "train"},
          {"model", job.model},
          {"objective", job.objective},
          {"dtype", "f32"},
          {"isa", job.device == "cpu" ? kernels::ops().name : "cuda"},
          {"threads", job.threads},
          {"prompts", job.prompts},
          {"samples", job.samples},
          {"prompt_tokens", job.prompt_tokens},
          {"new_tokens", job.new_tokens},
          {"micro_tokens_max", job.micro_tokens_max},
          {"micro_batches", figures.micro_batches},
          {"rows", figures.rows},
          {"tokens", figures.tokens},
          {"tokens_per_s", per_second(figures.tokens)},
          {"rows_per_s", per_second(figures.rows)},
          {"share_of_fma", gflops / figures.fma_gflops},
          {"share_of_fma_cpu", cpu_gflops / figures.fma_gflops},
          {"gflops", gflops},
          {"fma_gflops", figures.fma_gflops},
          {"peak_mb", figures.peak_mb},
          {"rss_mb", figures.rss_mb},
          {"page_faults", figures.cost.page_faults},
          {"first_page_faults", figures.first_page_faults},
          {"update_s", figures.cost.wall_s},
          {"update_cpu_s", figures.cost.cpu_s}};
}

// Only an update of sampled groups by one trainer is also timed in pieces.
core::Result<ordered_json> measured(const TrainJob& job, core::TeamRunner& team) {
  if (is_supervised(job.objective)) {
    TROUPE_TRY_ASSIGN(figures, time_supervised(job, team));
    return line_of(job, figures);
  }
  TROUPE_TRY_ASSIGN(settings, trainer_settings(job));
  std::vector<experience::Group> groups;
  TROUPE_TRY_ASSIGN(figures, time_policy(job, settings, groups, team));
  ordered_json line = line_of(job, figures);
  // A device enqueues: its pieces cannot be told apart by the host's clock.
  if (job.objective == "ppo" || !team.memory().on_host()) return line;
  TROUPE_TRY_ASSIGN(phases, measure_phases(job, settings, groups, kTimedSteps, team));
  line["forward_s"] = phases.forward_s;
  line["backward_s"] = phases.backward_s;
  line["optimizer_s"] = phases.optimizer_s;
  return line;
}

void print_for_people(const ordered_json& line) {
  const auto number = [&](const char* key) { return line.at(key).get<double>(); };
  std::printf("%s, %s kernels, %.0f threads: %.1f tokens/s, %.0f %% of the multiply-add peak\n",
              line.at("objective").get<std::string>().c_str(),
              line.at("isa").get<std::string>().c_str(), number("threads"), number("tokens_per_s"),
              100.0 * number("share_of_fma"));
  std::printf("  update    %.3f s for %.0f tokens in %.0f rows, %.0f micro-batches\n",
              number("update_s"), number("tokens"), number("rows"), number("micro_batches"));
  if (line.contains("forward_s")) {
    std::printf("  forward   %.3f s\n  backward  %.3f s\n  optimizer %.3f s\n", number("forward_s"),
                number("backward_s"), number("optimizer_s"));
  }
  std::printf("  %.1f of %.1f GFLOP/s, peak memory %.0f MiB, %.0f page faults an update\n",
              number("gflops"), number("fma_gflops"), number("peak_mb"), number("page_faults"));
}

}  // namespace

core::Result<void> bench_train(Words words) {
  TrainJob job;
  bool as_json = false;
  TROUPE_TRY_ASSIGN(
      outcome,
      parse_flags(
          "troupe bench train: time one policy update on random samples, medians of 3",
          {{"--model", &job.model, "model folder, or org/name in the local cache", true},
           {"--objective", &job.objective,
            "grpo, dr_grpo, rloo, reinforce_baseline, ppo, sft, dpo or rm"},
           {"--prompts", &job.prompts,
            "groups, sequences or pairs of one update; 0 = as usual for the objective", false, 0,
            4096},
           {"--samples", &job.samples, "samples of one prompt; 0 = as usual", false, 0, 4096},
           {"--prompt-tokens", &job.prompt_tokens, "of a prompt; 0 = as usual", false, 0, 1e6},
           {"--new-tokens", &job.new_tokens, "of a response or a whole sequence; 0 = as usual",
            false, 0, 1e6},
           {"--micro-tokens-max", &job.micro_tokens_max,
            "rows of a micro-batch, as train.micro_tokens_max", false, 16, 1e6},
           {"--device", &job.device, kDeviceHelp},
           {"--threads", &job.threads, "0 = all cores", false, 0, 1024},
           {"--json", &as_json, "one JSON line"}},
          words));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  choose_sizes(job);
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(job.model));
  job.model = folder.string();
  TROUPE_TRY_ASSIGN(team, make_team({job.device, job.threads}));
  job.threads = team->size();
  TROUPE_TRY_ASSIGN(line, measured(job, *team));
  as_json ? say(line.dump()) : print_for_people(line);
  return {};
}

}  // namespace troupe::app
