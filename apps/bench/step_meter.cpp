#include "apps/bench/step_meter.hpp"

#include <sys/resource.h>

#include <cmath>
#include <fstream>
#include <string>
#include <string_view>

namespace troupe::app {
namespace {

// A line of /proc/self/smaps_rollup; 0 when there is none.
double rollup_mb(std::string_view name) {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name)) return std::stod(line.substr(name.size())) / 1024.0;  // given in kB
  }
  return 0;
}

StepCost used_so_far() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {0.0, seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_minflt};
}

}  // namespace

StepMeter::StepMeter() : at_start_(used_so_far()) {}

StepCost StepMeter::cost() const {
  const double wall_s = wall_.seconds();
  const StepCost now = used_so_far();
  return {wall_s, now.cpu_s - at_start_.cpu_s, now.page_faults - at_start_.page_faults};
}

StepCost median_of(const std::vector<StepCost>& steps) {
  std::vector<double> wall, cpu, faults;
  for (const StepCost& step : steps) {
    wall.push_back(step.wall_s);
    cpu.push_back(step.cpu_s);
    faults.push_back(static_cast<double>(step.page_faults));
  }
  return {median(wall), median(cpu), std::llround(median(faults))};
}

double pss_mb() {
  return rollup_mb("Pss:");
}

double pss_own_mb() {
  return rollup_mb("Pss_Anon:") + rollup_mb("Pss_Shmem:");
}

}  // namespace troupe::app
