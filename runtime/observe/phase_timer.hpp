// Sums the wall time of each phase of a run ("generate", "train", ...). Phases do not overlap. Not
// thread-safe; RunReporter uses it under its lock.
#pragma once

#include "runtime/core/clock.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::observe {

class PhaseTimer {
 public:
  // `clock` outlives the timer. Nothing runs until the first `begin`.
  explicit PhaseTimer(const core::Clock& clock) : clock_(clock) {}

  // Ends the current phase and begins `phase`. A phase that is begun again adds to its total.
  void begin(std::string_view phase);
  // Ends the current phase.
  void end();

  const std::string& current() const { return current_; }  // empty when none runs
  // Seconds of the phases that have ended, in the order of their first begin.
  const std::vector<std::pair<std::string, double>>& totals() const { return totals_; }

 private:
  const core::Clock& clock_;
  std::string current_;
  core::TimePoint since_{};
  std::vector<std::pair<std::string, double>> totals_;
};

}  // namespace troupe::observe
