#include "apps/bench/control.hpp"

#include "apps/bench/lab_run.hpp"
#include "apps/bench/train_job.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/system_facts.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace troupe::app {
namespace {

using core::Result;

struct ControlJob {
  std::int64_t groups = 32, samples = 16, new_tokens = 8, updates = 60, rounds = 3;
  double limit_s = 240;
  bool json = false;
};

struct ControlFigures {
  double us_per_sample = 0, samples_per_s = 0, head_share = 0;
  double reward_node_mb = 0, head_mb = 0;
  std::uint64_t samples = 0;
};

std::vector<std::string> settings_of(const ControlJob& job) {
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  return {"--train.staleness_max",
          "1",
          "--train.max_steps",
          "1000000",
          "--rollout.batch_size",
          text(job.groups),
          "--rollout.n_samples_per_prompt",
          text(job.samples),
          "--rollout.max_new_tokens",
          text(job.new_tokens),
          "--ckpt.save_steps",
          "1000000"};
}

Result<ControlFigures> measure(const ControlJob& job) {
  TROUPE_TRY_ASSIGN(files, LabFiles::make({1, 32, 2, 1, 64, 128}, ""));
  TROUPE_TRY_ASSIGN(run, LabRun::start(files, settings_of(job)));
  TROUPE_TRY(run.reach(5, job.limit_s));
  TROUPE_TRY_ASSIGN(status, run.status(job.limit_s));
  ControlFigures figures;
  std::vector<double> costs, rates, shares;
  for (std::int64_t round = 0; round < job.rounds; ++round) {
    const std::uint64_t first = run.updates();
    const double before = processor_seconds(run.pid());
    TROUPE_TRY(run.reach(first + static_cast<std::uint64_t>(job.updates), job.limit_s));
    const double taken = processor_seconds(run.pid()) - before;
    const auto times = run.metric("time", first + 1);
    const double updates = static_cast<double>(times.size());
    const double samples = updates * static_cast<double>(job.groups * job.samples);
    const double wall = (times.back() - times.front()) * updates / std::max(updates - 1, 1.0);
    figures.samples += static_cast<std::uint64_t>(samples);
    costs.push_back(1e6 * taken / samples);
    rates.push_back(samples / wall);
    shares.push_back(taken / wall);
  }
  figures.us_per_sample = median(costs);
  figures.samples_per_s = median(rates);
  figures.head_share = median(shares);
  figures.head_mb = resident_mb(run.pid());
  figures.reward_node_mb = resident_mb(pid_of_role(status, "reward/0"));
  TROUPE_TRY(run.interrupt(job.limit_s));
  return figures;
}

}  // namespace

Result<void> bench_control(Words words) {
  ControlJob job;
  TROUPE_TRY_ASSIGN(
      outcome,
      parse_flags("troupe bench control: processor time of a run's head for a sample, medians of 3",
                  {{"--groups", &job.groups, "of an update", false, 1, 1024},
                   {"--samples", &job.samples, "of a group", false, 2, 256},
                   {"--new-tokens", &job.new_tokens, "of a sample", false, 1, 96},
                   {"--updates", &job.updates, "of a round", false, 2, 1e5},
                   {"--limit-s", &job.limit_s, "of each wait, then it fails", false, 1, 3600},
                   {"--json", &job.json, "one JSON line"}},
                  words));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(figures, measure(job));
  const nlohmann::ordered_json line = {{"bench", "control"},
                                       {"processor", processor_name()},
                                       {"cores", usable_cores()},
                                       {"groups", job.groups},
                                       {"samples_per_group", job.samples},
                                       {"new_tokens", job.new_tokens},
                                       {"samples", figures.samples},
                                       {"us_per_sample", figures.us_per_sample},
                                       {"samples_per_s", figures.samples_per_s},
                                       {"head_share_of_core", figures.head_share},
                                       {"head_mb", figures.head_mb},
                                       {"reward_node_mb", figures.reward_node_mb}};
  if (job.json) {
    std::printf("%s\n", line.dump().c_str());
    return {};
  }
  for (const auto& [name, value] : line.items())
    std::printf("%-20s %s\n", name.c_str(), value.dump().c_str());
  return {};
}

}  // namespace troupe::app
