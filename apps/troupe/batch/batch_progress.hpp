// Shows the progress of a long batch on standard error: on a terminal one line, redrawn in place;
// else a line every ten seconds. Owned by a command; one thread.
#pragma once

#include "runtime/core/clock.hpp"

#include <cstdint>
#include <string>

namespace troupe::app {

class BatchProgress {
 public:
  // `verb` as in "sampled", `unit` as in "prompts". The work resumes at `first` of `all`.
  BatchProgress(std::string verb, std::string unit, std::uint64_t first, std::uint64_t all);
  ~BatchProgress();  // ends the line
  BatchProgress(const BatchProgress&) = delete;
  BatchProgress& operator=(const BatchProgress&) = delete;

  // Shows `done` of all. `tokens`: since this process began (0: not shown).
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
