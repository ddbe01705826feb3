// What one optimiser step costs this process: wall time, processor time of all threads, page
// faults; and the memory that the process holds. Processor time is what other work on the machine
// disturbs least. Value types; used from one thread.
#pragma once

#include "apps/bench/figures.hpp"

#include <cstdint>
#include <vector>

namespace troupe::app {

struct StepCost {
  double wall_s = 0;
  double cpu_s = 0;              // user and system, all threads
  std::int64_t page_faults = 0;  // without input or output: memory touched for the first time
};

// Measures from when it is made.
class StepMeter {
 public:
  StepMeter();
  StepCost cost() const;  // so far

 private:
  StepCost at_start_;
  Stopwatch wall_;
};

// Each figure by itself.
StepCost median_of(const std::vector<StepCost>& steps);

// Proportional set size of this process now, MiB: pages shared with others count by their share.
// 0 when the kernel does not tell.
double pss_mb();
// The same without mapped files (program and libraries), whose share changes when other processes
// that map them come and go.
double pss_own_mb();

}  // namespace troupe::app
