// What the terminal shows of a live run, and the time of its phases. A thread of its own
// redraws the live line every second. RunReporter uses it under its lock.
#pragma once

#include "actors/protocol/messages.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/observe/phase_timer.hpp"
#include "runtime/observe/progress.hpp"

#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::session {

class RunDisplay {
 public:
  // `format`: --log.format. `done` of `updates` are done already. `clock` outlives this object.
  RunDisplay(const std::string& format,
             const core::Clock& clock,
             std::uint64_t done,
             std::uint64_t updates);

  observe::Progress& progress() { return progress_; }
  void begin(const std::string& phase);
  // How many groups are there: while samples or scores are awaited, which of them.
  void on_groups(const actors::GroupCounts& counts);
  // Ends the current phase; the seconds of each phase in order of first appearance.
  std::vector<std::pair<std::string, double>> phases();

 private:
  void tick(std::stop_token stop);

  observe::PhaseTimer timer_;
  observe::Progress progress_;
  std::jthread ticker_;  // last, so that it ends first
};

}  // namespace troupe::session
