#include "apps/session/run_summary.hpp"

#include "apps/session/evaluations.hpp"
#include "apps/session/run_report.hpp"
#include "runtime/learn/evaluation.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

namespace troupe::app {
namespace {

constexpr int kResamples = 10'000;

void print_row(const char* name,
               const std::vector<double>& before,
               const std::vector<double>& after,
               double before_mean,
               double after_mean) {
  const auto interval = learn::paired_bootstrap(before, after, kResamples, 1);
  if (!interval) return;
  std::printf("  %-22s %8.3f %8.3f %+9.3f   [%+.3f, %+.3f]\n", name, before_mean, after_mean,
              interval->mean, interval->low, interval->high);
}

void print_evaluations(const store::RunFolder& folder, std::uint64_t updates) {
  const auto first = read_evaluation(folder.eval_file(0), 0);
  const auto last = read_evaluation(folder.eval_file(updates), updates);
  if (!first || !last || first->sampled.size() != last->sampled.size()) return;
  std::printf("\nheld-out accuracy, %zu problems %15s %8s %9s   %s\n", first->sampled.size(),
              "before", "after", "change", "95 % interval (paired bootstrap)");
  print_row("sampled", first->sampled, last->sampled, first->sampled_mean(), last->sampled_mean());
  print_row("greedy", first->greedy, last->greedy, first->greedy_mean(), last->greedy_mean());
}

// How much ran at once and how old the tokens were: of asynchronous runs.
void print_overlap(const RunReport& report) {
  std::printf("\ngenerators and policy busy at once %12.1f s of %.1f s (%.0f %%)\n",
              report.busy_together_s, report.wall_s,
              100 * report.busy_together_s / std::max(report.wall_s, 1e-9));
  std::uint64_t tokens = 0;
  for (const std::uint64_t count : report.staleness)
    tokens += count;
  std::printf("trained tokens by age in updates  ");
  for (std::size_t age = 0; age < report.staleness.size(); ++age) {
    std::printf("  %zu: %llu (%.0f %%)", age,
                static_cast<unsigned long long>(report.staleness[age]),
                100.0 * static_cast<double>(report.staleness[age]) /
                    static_cast<double>(std::max<std::uint64_t>(tokens, 1)));
  }
  std::printf("\nsequences across a new version    %llu\n",
              static_cast<unsigned long long>(report.crossed));
}

void print_company(const store::RunFolder& folder) {
  const auto report = read_report(folder.path());
  if (!report) return;
  if (report->staleness.size() > 1) print_overlap(*report);
  std::printf("\n");
  for (const RoleShare& role : report->roles) {
    std::printf("  %-22s busy %3.0f %%; %s %.0f %%\n", role.name.c_str(), 100 * role.busy,
                role.idle_cause.c_str(), 100 * role.idle);
  }
}

// Of the process and the largest of those it started.
double peak_gb() {
  rusage own{}, children{};
  ::getrusage(RUSAGE_SELF, &own);
  ::getrusage(RUSAGE_CHILDREN, &children);
  return static_cast<double>(std::max(own.ru_maxrss, children.ru_maxrss)) / 1e6;
}

}  // namespace

void print_summary(const store::RunFolder& folder,
                   std::uint64_t updates,
                   double load_s,
                   const std::vector<std::pair<std::string, double>>& phases) {
  print_evaluations(folder, updates);
  double total = load_s;
  for (const auto& [name, seconds] : phases)
    total += seconds;
  std::printf("\nwall time of the run by phase %13s %8s\n", "seconds", "share");
  std::printf("  %-22s %16.1f %7.1f%%\n", "load", load_s, 100 * load_s / total);
  for (const auto& [name, seconds] : phases) {
    std::printf("  %-22s %16.1f %7.1f%%\n", name.c_str(), seconds, 100 * seconds / total);
  }
  std::printf("  %-22s %16.1f\n", "all", total);
  print_company(folder);
  if (const std::uint64_t missing = sum_of_metric(folder.path(), "reward/missing"); missing > 0) {
    std::printf("\nsamples without a score           %llu (metric reward/missing; causes in %s)\n",
                static_cast<unsigned long long>(missing), folder.log_file().c_str());
  }
  std::printf("\npeak memory of one process %.2f GB; run folder %s\n", peak_gb(),
              folder.path().c_str());
}

core::Result<void> say_finished(const store::Checkpoint& newest,
                                std::uint64_t asked,
                                const std::string& unit) {
  const std::string done = std::to_string(newest.step), all = std::to_string(asked);
  if (newest.step > asked) {
    return core::fail(core::ErrorCode::kConfig,
                      "the run was asked for " + all + " " + unit + " and has done " + done + " (" +
                          newest.folder.string() + "); raise --train.max_steps to go on");
  }
  std::printf("already finished: %s of %s %s (%s); a larger --train.max_steps goes on from there\n",
              done.c_str(), all.c_str(), unit.c_str(), newest.folder.c_str());
  return {};
}

}  // namespace troupe::app
