// Wall time by phase of a run ("generate", "train", ...): one phase at a time, each second counted
// once. Owned by the run's recorder; one thread.
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

  // Ends the phase that runs and begins another; the same name again goes on with it.
  void begin(std::string_view phase);
  // Ends the phase that runs.
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
