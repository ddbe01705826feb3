// Flags, the sweep of the learning rate, the grid of runs.
#include "apps/bench/lag.hpp"

#include "apps/bench/lag_run.hpp"
#include "apps/bench/lag_summary.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/system_facts.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace troupe::app {
namespace {

using core::ErrorCode;
using nlohmann::ordered_json;

constexpr std::int64_t kLags[] = {0, 2, 4, 8, 16};
constexpr double kRates[] = {3e-4, 1e-3, 2e-3};
constexpr std::uint64_t kSweepSeed = 101;  // the sweep has seeds of its own
constexpr std::uint64_t kSweepSeeds = 3;

struct LagStudy {
  std::vector<std::string> arms;
  std::int64_t seeds = 5, updates = 400, threads = 0;
  double lr = 0;
  std::string figure;
  bool json = false;
};

ordered_json line_of(const LagJob& job, const LagResult& result, const char* phase) {
  return {{"bench", "lag"},
          {"phase", phase},
          {"arm", job.arm},
          {"lag", job.lag},
          {"seed", job.seed},
          {"lr", job.lr},
          {"updates", job.updates},
          {"final_score", result.final_score},
          {"area", result.area},
          {"ess", result.ess},
          {"rho_max", result.rho_max},
          {"masked_share", result.masked_share},
          {"kl_rollout", result.kl_rollout},
          {"seconds", result.seconds}};
}

// Runs all jobs, `threads` at a time; a line as each ends, results in the order of the jobs.
core::Result<std::vector<LagResult>> run_all(const std::vector<LagJob>& jobs,
                                             const LagStudy& study,
                                             const char* phase) {
  std::vector<std::optional<core::Result<LagResult>>> results(jobs.size());
  std::atomic<std::size_t> next = 0;
  std::mutex output;
  const auto work = [&] {
    for (std::size_t i = next++; i < jobs.size(); i = next++) {
      results[i] = run_lag(jobs[i]);
      if (!results[i]->has_value()) {
        next = jobs.size();  // nobody starts another
        return;
      }
      const std::lock_guard lock(output);
      if (study.json) {
        std::printf("%s\n", line_of(jobs[i], **results[i], phase).dump().c_str());
        std::fflush(stdout);
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    for (std::int64_t i = 0; i < study.threads; ++i)
      workers.emplace_back(work);
  }
  std::vector<LagResult> done;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!results[i].has_value()) continue;
    if (!results[i]->has_value()) {
      return core::fail(
          results[i]->error().within(jobs[i].arm + " at lag " + std::to_string(jobs[i].lag)));
    }
    done.push_back(**results[i]);
  }
  return done;
}

// The rate with the best mean score over all arms at lag 0.
core::Result<double> sweep(const LagStudy& study) {
  std::vector<LagJob> jobs;
  for (const double lr : kRates) {
    for (const std::string& arm : study.arms) {
      for (std::uint64_t seed = 0; seed < kSweepSeeds; ++seed)
        jobs.push_back({arm, 0, kSweepSeed + seed, lr, study.updates});
    }
  }
  TROUPE_TRY_ASSIGN(results, run_all(jobs, study, "sweep"));
  const std::size_t each = jobs.size() / std::size(kRates);
  double best = kRates[0], best_mean = -1;
  for (std::size_t r = 0; r < std::size(kRates); ++r) {
    double mean = 0;
    for (std::size_t i = r * each; i < (r + 1) * each; ++i)
      mean += results[i].final_score / static_cast<double>(each);
    if (!study.json) std::printf("lr %g at lag 0: %.3f\n", kRates[r], mean);
    if (mean > best_mean) {
      best = kRates[r];
      best_mean = mean;
    }
  }
  return best;
}

core::Result<void> run_study(LagStudy study) {
  if (study.lr == 0) {
    TROUPE_TRY_ASSIGN(lr, sweep(study));
    study.lr = lr;
  }
  std::vector<LagJob> jobs;
  std::vector<LagCell> cells;
  for (const std::string& arm : study.arms) {
    for (const std::int64_t lag : kLags) {
      cells.push_back({arm, lag, {}});
      for (std::int64_t seed = 1; seed <= study.seeds; ++seed)
        jobs.push_back({arm, lag, static_cast<std::uint64_t>(seed), study.lr, study.updates});
    }
  }
  TROUPE_TRY_ASSIGN(results, run_all(jobs, study, "study"));
  const auto seeds = static_cast<std::size_t>(study.seeds);
  for (std::size_t i = 0; i < results.size(); ++i)
    cells[i / seeds].scores.push_back(results[i].final_score);
  if (study.json) {
    for (const LagCell& cell : cells) {
      const ordered_json line = {{"bench", "lag"},      {"phase", "summary"},
                                 {"arm", cell.arm},     {"lag", cell.lag},
                                 {"lr", study.lr},      {"seeds", study.seeds},
                                 {"mean", cell.mean()}, {"half_interval_95", cell.half_interval()}};
      std::printf("%s\n", line.dump().c_str());
    }
  } else {
    std::printf(
        "lr %g, %lld updates, %lld seeds; final score, mean ± half of its 95 %% interval\n\n%s",
        study.lr, static_cast<long long>(study.updates), static_cast<long long>(study.seeds),
        lag_table(cells).c_str());
  }
  if (study.figure.empty()) return {};
  return store::write_file(study.figure, lag_figure(cells));
}

}  // namespace

core::Result<void> bench_lag(Words words) {
  LagStudy study;
  TROUPE_TRY_ASSIGN(
      outcome,
      parse_flags(
          "troupe bench lag: a toy task learnt from samples of older weights, by objective",
          {{"--arm", &study.arms,
            "ppo, decoupled, a3po, vtrace or online_dpo; several times for several; all "
            "when left out"},
           {"--seeds", &study.seeds, "runs of each arm at each lag", false, 1, 1000},
           {"--updates", &study.updates, "updates of a run", false, 1, 1e6},
           {"--lr", &study.lr, "learning rate of all arms; 0 = the best at lag 0", false, 0, 1},
           {"--threads", &study.threads, "runs at a time; 0 = all cores", false, 0, 1024},
           {"--figure", &study.figure, "write the figure to this SVG file"},
           {"--json", &study.json, "one JSON line a run"}},
          words));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  const auto known = lag_arms();
  for (const std::string& arm : study.arms) {
    if (std::find(known.begin(), known.end(), arm) == known.end()) {
      return core::fail(ErrorCode::kConfig, "troupe bench lag: there is no arm '" + arm +
                                                "'; expected ppo, decoupled, a3po, vtrace or "
                                                "online_dpo (--arm)");
    }
  }
  if (study.arms.empty()) study.arms.assign(known.begin(), known.end());
  if (study.threads == 0) study.threads = usable_cores();
  return run_study(std::move(study));
}

}  // namespace troupe::app
