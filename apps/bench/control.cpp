// `troupe bench control`: measures how much processor time one sample costs the head of a run of
// several processes (controller, prompts, tickets, scores, rollouts, ledger), and the memory of the
// head and of a node without a model.
#include "apps/bench/bench.hpp"
#include "apps/bench/figures.hpp"
#include "apps/bench/lab_run.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/system_facts.hpp"

#include <algorithm>

namespace troupe::bench {
namespace {

struct ControlJob {
  LabSizes sizes{.groups = 32, .samples = 16, .new_tokens = 8};
  std::int64_t updates = 60;
  double limit_s = 240;
};

Result<nlohmann::ordered_json> measure(const ControlJob& job) {
  TROUPE_TRY_ASSIGN(files, LabFiles::make({1, 32, 2, 1, 64, 128}));
  TROUPE_TRY_ASSIGN(run,
                    LabRun::start(files, job.sizes, {"--ckpt.save_steps=1000000"}, job.limit_s));
  TROUPE_TRY(run.reach(5));
  TROUPE_TRY_ASSIGN(status, run.status());
  std::uint64_t all_samples = 0;
  std::vector<double> costs, rates, shares;
  for (int round = 0; round < kRepetitions; ++round) {
    const std::uint64_t first = run.updates();
    const double before = processor_seconds(run.pid());
    TROUPE_TRY(run.reach(first + static_cast<std::uint64_t>(job.updates)));
    const double taken = processor_seconds(run.pid()) - before;
    const auto times = run.metric("time", first + 1);
    const double updates = static_cast<double>(times.size());
    const double samples = updates * static_cast<double>(job.sizes.groups * job.sizes.samples);
    const double wall = (times.back() - times.front()) * updates / std::max(updates - 1, 1.0);
    all_samples += static_cast<std::uint64_t>(samples);
    costs.push_back(1e6 * taken / samples);
    rates.push_back(samples / wall);
    shares.push_back(taken / wall);
  }
  const double head_mb = memory_mb(run.pid());
  const double reward_node_mb = memory_mb(pid_of_role(status, "reward/0"));
  TROUPE_TRY(run.interrupt());
  return nlohmann::ordered_json{{"bench", "control"},
                                {"processor", cli::processor_name()},
                                {"cores", cli::usable_cores()},
                                {"groups", job.sizes.groups},
                                {"samples_per_group", job.sizes.samples},
                                {"new_tokens", job.sizes.new_tokens},
                                {"samples", all_samples},
                                {"us_per_sample", median(costs)},
                                {"samples_per_s", median(rates)},
                                {"head_share_of_core", median(shares)},
                                {"head_mb", head_mb},
                                {"reward_node_mb", reward_node_mb}};
}

}  // namespace

Result<void> bench_control(cli::Words words) {
  ControlJob job;
  bool as_json = false;
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags(
          "troupe bench control: processor time of a run's head for a sample, medians of 3",
          {{"--groups", &job.sizes.groups, "groups of an update", false, 1, 1024},
           {"--samples", &job.sizes.samples, "samples of a group", false, 2, 256},
           {"--new-tokens", &job.sizes.new_tokens, "tokens of a sample", false, 1, 96},
           {"--updates", &job.updates, "updates of a round", false, 2, 1e5},
           {"--limit-s", &job.limit_s, "seconds of each wait before the run fails", false, 1, 3600},
           {"--json", &as_json, "one JSON line"}},
          words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(figures, measure(job));
  print_figures(figures, as_json);
  return {};
}

}  // namespace troupe::bench
