// Shows the progress of a batch command on standard error: on a terminal one line, redrawn in
// place; elsewhere a line every ten seconds. Owned by a command; one thread.
#pragma once

#include "runtime/core/clock.hpp"

#include <cstdint>
#include <string>

namespace troupe::app {

class BatchProgress {
 public:
  // `verb` as in "sampled", `unit` as in "prompts". `first` of `all` units are done already.
  BatchProgress(std::string verb, std::string unit, std::uint64_t first, std::uint64_t all);
  ~BatchProgress();  // ends the line
  BatchProgress(const BatchProgress&) = delete;
  BatchProgress& operator=(const BatchProgress&) = delete;

  // Shows that `done` units are done, if it is time for a new line. `tokens`: response tokens since
  // this object was made, for the speed; 0: no speed is shown.
  void at(std::uint64_t done, std::uint64_t tokens);

 private:
  const std::string verb_, unit_;
  const std::uint64_t first_, all_;
  const bool live_;
  const core::SteadyClock clock_;
  const core::TimePoint begin_;
  core::TimePoint shown_;
  bool drawn_ = false;
};

}  // namespace troupe::app
