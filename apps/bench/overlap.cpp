// Three runs of the same sizes in turn: asynchronous, synchronous on the same share of the cores,
// synchronous on all of them.
#include "apps/bench/overlap.hpp"

#include "apps/bench/lab_run.hpp"
#include "apps/bench/train_job.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/system_facts.hpp"
#include "apps/session/limits.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace troupe::app {
namespace {

using core::Result;
using nlohmann::json;

struct OverlapJob {
  std::int64_t reward_ms = 20, staleness = 1, updates = 40, warm_up = 5;
  std::int64_t hidden = 128, layers = 4, groups = 8, samples = 4, new_tokens = 96;
  double limit_s = 240;
  bool json = false;
};

// Seconds an update, over the updates after the warm-up.
struct Sides {
  double step_s = 0;
  double generator_s = 0, policy_s = 0, reward_s = 0;  // busy
  double generator_idle_share = 0, policy_idle_share = 0, together_share = 0;
  json idle_by_cause;  // of the generator, shares of the time
  std::uint64_t updates = 0;

  double longer() const { return std::max({generator_s, policy_s, reward_s}); }
};

Result<void> write_reward(const std::filesystem::path& file, std::int64_t reward_ms) {
  std::ofstream out(file);
  out << "import time\n\ndef reward_func(queries, prompts, labels):\n    time.sleep("
      << static_cast<double>(reward_ms) * 1e-3
      << ")\n    return [float(len(q) % 5) for q in queries]\n";
  out.close();
  if (out) return {};
  return core::fail(core::ErrorCode::kResources, "cannot write " + file.string());
}

std::vector<std::string> settings_of(const OverlapJob& job,
                                     std::int64_t staleness,
                                     std::int64_t threads,
                                     const std::string& reward) {
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  return {"--train.staleness_max",
          text(staleness),
          "--train.threads",
          text(threads),
          "--train.max_steps",
          "1000000",
          "--rollout.batch_size",
          text(job.groups),
          "--rollout.n_samples_per_prompt",
          text(job.samples),
          "--rollout.max_new_tokens",
          text(job.new_tokens),
          "--reward.rule",
          "",
          "--reward.rule_pattern",
          "",
          "--reward.python",
          reward,
          "--ckpt.save_steps",
          "1000000"};
}

double per_update(const json& a, const json& b, const char* role, double updates) {
  return (role_seconds(b, role, "busy_s") - role_seconds(a, role, "busy_s")) / updates;
}

double idle_share(const json& a, const json& b, const char* role) {
  const double wall = role_seconds(b, role, "wall_s") - role_seconds(a, role, "wall_s");
  return (idle_seconds(b, role) - idle_seconds(a, role)) / std::max(wall, 1e-9);
}

json causes_of(const json& status, const std::string& role) {
  const json roles = status.value("roles", json::array());
  for (const json& one : roles) {
    if (one.value("name", "") == role) return one.value("idle_s", json::object());
  }
  return json::object();
}

json idle_by_cause(const json& a, const json& b, const char* role) {
  const double wall = role_seconds(b, role, "wall_s") - role_seconds(a, role, "wall_s");
  const json before = causes_of(a, role), after = causes_of(b, role);
  json shares = json::object();
  for (const auto& [cause, seconds] : after.items()) {
    const double share = (seconds.get<double>() - before.value(cause, 0.0)) / std::max(wall, 1e-9);
    if (share > 0.0005) shares[cause] = share;
  }
  return shares;
}

// Accounts are differences between two looks at the run, both while it goes on. What a role's
// account says is up to half a second old, so the stretch between is made long.
Result<Sides> watch(const OverlapJob& job, std::int64_t staleness, std::int64_t threads) {
  TROUPE_TRY_ASSIGN(files, LabFiles::make({job.layers, job.hidden, 4, 2, 2 * job.hidden, 512}, ""));
  TROUPE_TRY(write_reward(files / "slow.py", job.reward_ms));
  TROUPE_TRY_ASSIGN(run, LabRun::start(files, settings_of(job, staleness, threads,
                                                          (files / "slow.py").string())));
  const auto warm_up = static_cast<std::uint64_t>(job.warm_up);
  TROUPE_TRY(run.reach(warm_up, job.limit_s));
  TROUPE_TRY_ASSIGN(before, run.status(job.limit_s));
  TROUPE_TRY(run.reach(warm_up + static_cast<std::uint64_t>(job.updates), job.limit_s));
  TROUPE_TRY_ASSIGN(after, run.status(job.limit_s));
  TROUPE_TRY(run.interrupt(job.limit_s));
  const auto steps = run.metric("time", 1);
  Sides sides;
  const double wall =
      role_seconds(after, "policy/0", "wall_s") - role_seconds(before, "policy/0", "wall_s");
  const double least = 2 * std::chrono::duration<double>(limits::kStatusEvery).count();
  if (wall < least) {
    return core::fail(
        core::ErrorCode::kConfig,
        "the measured updates took too short for the roles' accounts, which are taken "
        "every half second; raise --updates");
  }
  const auto last = static_cast<std::size_t>(job.warm_up + job.updates);
  sides.updates = static_cast<std::uint64_t>(job.updates);
  sides.step_s = (steps.at(last - 1) - steps.at(static_cast<std::size_t>(job.warm_up) - 1)) /
                 static_cast<double>(job.updates);
  const double updates = wall / sides.step_s;  // between the two looks
  sides.generator_s = per_update(before, after, "generator/0", updates);
  sides.policy_s = per_update(before, after, "policy/0", updates);
  sides.reward_s = per_update(before, after, "reward/0", updates);
  sides.generator_idle_share = idle_share(before, after, "generator/0");
  sides.policy_idle_share = idle_share(before, after, "policy/0");
  sides.idle_by_cause = idle_by_cause(before, after, "generator/0");
  sides.together_share =
      (after.value("busy_together_s", 0.0) - before.value("busy_together_s", 0.0)) /
      std::max(wall, 1e-9);
  return sides;
}

void print(
    const OverlapJob& job, std::int64_t cores, const Sides& async, const Sides& alone, const Sides& sync) {
  const nlohmann::ordered_json line = {{"bench", "overlap"},
                                       {"processor", processor_name()},
                                       {"cores", cores},
                                       {"reward_ms", job.reward_ms},
                                       {"staleness_max", job.staleness},
                                       {"updates", async.updates},
                                       {"step_s_async", async.step_s},
                                       {"step_s_sync", sync.step_s},
                                       {"step_s_sync_same_share", alone.step_s},
                                       {"longer_side_s", async.longer()},
                                       {"longer_side_alone_s", alone.longer()},
                                       {"ratio", async.step_s / async.longer()},
                                       {"ratio_alone", async.step_s / alone.longer()},
                                       {"generator_s", async.generator_s},
                                       {"policy_s", async.policy_s},
                                       {"reward_s", async.reward_s},
                                       {"generator_alone_s", alone.generator_s},
                                       {"policy_alone_s", alone.policy_s},
                                       {"generator_idle_share", async.generator_idle_share},
                                       {"generator_idle", async.idle_by_cause},
                                       {"policy_idle_share", async.policy_idle_share},
                                       {"busy_together_share", async.together_share},
                                       {"speed_up", sync.step_s / async.step_s}};
  if (job.json) {
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  for (const auto& [name, value] : line.items())
    std::printf("%-24s %s\n", name.c_str(), value.dump().c_str());
}

}  // namespace

Result<void> bench_overlap(Words words) {
  OverlapJob job;
  TROUPE_TRY_ASSIGN(
      outcome,
      parse_flags(
          "troupe bench overlap: an asynchronous run against the longest of its sides, and a "
          "synchronous one",
          {{"--reward-ms", &job.reward_ms, "that the reward takes for a group", false, 0, 60000},
           {"--staleness", &job.staleness, "of the asynchronous run", false, 1, 64},
           {"--updates", &job.updates, "measured", false, 5, 1e5},
           {"--warm-up", &job.warm_up, "updates before", false, 1, 1e4},
           {"--layers", &job.layers, "of the model", false, 1, 64},
           {"--hidden", &job.hidden, "size of the model", false, 32, 4096},
           {"--groups", &job.groups, "of an update", false, 1, 256},
           {"--samples", &job.samples, "of a group", false, 2, 256},
           {"--new-tokens", &job.new_tokens, "of a sample", false, 1, 400},
           {"--limit-s", &job.limit_s, "of each wait, then it fails", false, 1, 3600},
           {"--json", &job.json, "one JSON line"}},
          words));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  const auto cores = static_cast<std::int64_t>(usable_cores());
  TROUPE_TRY_ASSIGN(async, watch(job, job.staleness, cores));
  TROUPE_TRY_ASSIGN(alone, watch(job, 0, std::max<std::int64_t>(cores / 2, 1)));
  TROUPE_TRY_ASSIGN(sync, watch(job, 0, cores));
  print(job, cores, async, alone, sync);
  return {};
}

}  // namespace troupe::app
