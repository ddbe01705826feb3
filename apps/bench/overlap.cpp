// `troupe bench overlap`: compares the time of an asynchronous update with the longest of its sides
// (sampling, training, reward) and with synchronous updates. Does three runs of the same sizes in
// turn: asynchronous, synchronous on half of the cores, synchronous on all cores.
#include "apps/bench/bench.hpp"
#include "apps/bench/figures.hpp"
#include "apps/bench/lab_run.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/system_facts.hpp"
#include "apps/session/limits.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <algorithm>
#include <sstream>

namespace troupe::bench {
namespace {

using nlohmann::json;

struct OverlapJob {
  LabSizes sizes{.groups = 8, .samples = 4, .new_tokens = 96};
  std::int64_t reward_ms = 20, updates = 40, warm_up = 5, hidden = 128, layers = 4;
  double limit_s = 240;
};

// What one run did in the updates after the warm-up.
struct Sides {
  double step_s = 0;  // mean of an update
  RoleTimes generator, policy, reward;
  double together_share = 0;  // of the time in which generator and policy were busy at once

  // Seconds of an update in which the role was busy. All roles were watched as long as the policy.
  double busy_s(const RoleTimes& role) const { return role.busy_s * step_s / policy.wall_s; }
  double longer_s() const { return std::max({busy_s(generator), busy_s(policy), busy_s(reward)}); }
  // The generator's idle shares by cause, without negligible ones.
  json generator_idle() const {
    json shares = json::object();
    for (const auto& [cause, seconds] : generator.idle_s) {
      const double share = seconds / std::max(generator.wall_s, 1e-9);
      if (share > 0.0005) shares[cause] = share;
    }
    return shares;
  }
};

std::string slow_reward(std::int64_t reward_ms) {
  std::ostringstream out;
  out << "import time\n\ndef reward_func(queries, prompts, labels):\n    time.sleep("
      << static_cast<double>(reward_ms) * 1e-3
      << ")\n    return [float(len(q) % 5) for q in queries]\n";
  return out.str();
}

// Does one run and takes the roles' times from two answers of `troupe status` during it. A role's
// report is up to half a second old, so the updates between the answers must take much longer.
Result<Sides> watch(const OverlapJob& job, std::int64_t staleness, std::int64_t threads) {
  TROUPE_TRY_ASSIGN(files, LabFiles::make({job.layers, job.hidden, 4, 2, 2 * job.hidden, 512}));
  TROUPE_TRY(store::write_file(files / "slow.py", slow_reward(job.reward_ms)));
  LabSizes sizes = job.sizes;
  sizes.staleness_max = staleness;
  TROUPE_TRY_ASSIGN(
      run, LabRun::start(files, sizes,
                         {"--train.threads=" + std::to_string(threads), "--reward.rule", "",
                          "--reward.rule_pattern", "", "--reward.python", files / "slow.py",
                          "--ckpt.save_steps=1000000"},
                         job.limit_s));
  const auto first = static_cast<std::uint64_t>(job.warm_up);
  const std::uint64_t last = first + static_cast<std::uint64_t>(job.updates);
  TROUPE_TRY(run.reach(first));
  TROUPE_TRY_ASSIGN(before, run.status());
  TROUPE_TRY(run.reach(last));
  TROUPE_TRY_ASSIGN(after, run.status());
  TROUPE_TRY(run.interrupt());
  Sides sides;
  sides.generator = role_times(before, after, "generator/0");
  sides.policy = role_times(before, after, "policy/0");
  sides.reward = role_times(before, after, "reward/0");
  if (sides.policy.wall_s <
      2 * std::chrono::duration<double>(session::limits::kStatusEvery).count()) {
    return fail(ErrorCode::kConfig,
                "the measured updates took too short for the roles' accounts, which are "
                "taken every half second",
                "raise --updates");
  }
  const auto times = run.metric("time", 1);
  sides.step_s = (times.at(last - 1) - times.at(first - 1)) / static_cast<double>(job.updates);
  sides.together_share =
      (after.value("busy_together_s", 0.0) - before.value("busy_together_s", 0.0)) /
      std::max(sides.policy.wall_s, 1e-9);
  return sides;
}

}  // namespace

Result<void> bench_overlap(cli::Words words) {
  OverlapJob job;
  bool as_json = false;
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags(
          "troupe bench overlap: an asynchronous run against the longest of its sides, and a "
          "synchronous one",
          {{"--reward-ms", &job.reward_ms, "the reward's time for a group", false, 0, 60000},
           {"--staleness", &job.sizes.staleness_max, "largest lag, in updates", false, 1, 64},
           {"--updates", &job.updates, "measured", false, 5, 1e5},
           {"--warm-up", &job.warm_up, "updates before those measured", false, 1, 1e4},
           {"--layers", &job.layers, "layers of the model", false, 1, 64},
           {"--hidden", &job.hidden, "size of the model", false, 32, 4096},
           {"--groups", &job.sizes.groups, "groups of an update", false, 1, 256},
           {"--samples", &job.sizes.samples, "samples of a group", false, 2, 256},
           {"--new-tokens", &job.sizes.new_tokens, "tokens of a sample", false, 1, 400},
           {"--limit-s", &job.limit_s, "seconds of each wait before the run fails", false, 1, 3600},
           {"--json", &as_json, "one JSON line"}},
          words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  const auto cores = static_cast<std::int64_t>(cli::usable_cores());
  TROUPE_TRY_ASSIGN(async, watch(job, job.sizes.staleness_max, cores));
  TROUPE_TRY_ASSIGN(alone, watch(job, 0, std::max<std::int64_t>(cores / 2, 1)));
  TROUPE_TRY_ASSIGN(sync, watch(job, 0, cores));
  print_figures({{"bench", "overlap"},
                 {"processor", cli::processor_name()},
                 {"cores", cores},
                 {"reward_ms", job.reward_ms},
                 {"staleness_max", job.sizes.staleness_max},
                 {"updates", job.updates},
                 {"step_s_async", async.step_s},
                 {"step_s_sync", sync.step_s},
                 {"step_s_sync_same_share", alone.step_s},
                 {"longer_side_s", async.longer_s()},
                 {"longer_side_alone_s", alone.longer_s()},
                 {"ratio", async.step_s / async.longer_s()},
                 {"ratio_alone", async.step_s / alone.longer_s()},
                 {"generator_s", async.busy_s(async.generator)},
                 {"policy_s", async.busy_s(async.policy)},
                 {"reward_s", async.busy_s(async.reward)},
                 {"generator_alone_s", alone.busy_s(alone.generator)},
                 {"policy_alone_s", alone.busy_s(alone.policy)},
                 {"generator_idle_share", async.generator.idle_share()},
                 {"generator_idle", async.generator_idle()},
                 {"policy_idle_share", async.policy.idle_share()},
                 {"busy_together_share", async.together_share},
                 {"speed_up", sync.step_s / async.step_s}},
                as_json);
  return {};
}

}  // namespace troupe::bench
