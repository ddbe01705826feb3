// Prints the table at the end of a run.
#include "apps/troupe/train/run_summary.hpp"

#include <sys/resource.h>

#include <cstdio>

#include "apps/troupe/train/evaluations.hpp"
#include "runtime/learn/evaluation.hpp"

namespace troupe::app {
namespace {

constexpr int kResamples = 10'000;

void print_row(const char* name, const std::vector<double>& before,
               const std::vector<double>& after, double before_mean, double after_mean) {
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
  print_row("sampled", first->sampled, last->sampled, first->sampled_mean(),
            last->sampled_mean());
  print_row("greedy", first->greedy, last->greedy, first->greedy_mean(), last->greedy_mean());
}

}  // namespace

void print_summary(const store::RunFolder& folder, std::uint64_t updates, double load_s,
                   const std::vector<std::pair<std::string, double>>& phases) {
  print_evaluations(folder, updates);
  double total = load_s;
  for (const auto& [name, seconds] : phases) total += seconds;
  std::printf("\nwall time by phase %24s %8s\n", "seconds", "share");
  std::printf("  %-22s %16.1f %7.1f%%\n", "load", load_s, 100 * load_s / total);
  for (const auto& [name, seconds] : phases) {
    std::printf("  %-22s %16.1f %7.1f%%\n", name.c_str(), seconds, 100 * seconds / total);
  }
  std::printf("  %-22s %16.1f\n", "all", total);
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  std::printf("\npeak memory %.2f GB; run folder %s\n",
              static_cast<double>(usage.ru_maxrss) / 1e6, folder.path().c_str());
}

}  // namespace troupe::app
