// Times the retries of a command that stays after its company was lost. On the main thread, which
// `next` blocks.
#pragma once

#include "actors/company/limits.hpp"
#include "actors/controller/limits.hpp"
#include "apps/cli/stop_signal.hpp"
#include "runtime/core/jitter.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace troupe::app {

// Waits before a company is joined again: each failed try doubles the wait up to a limit, and up to
// half of it is random, so that many nodes do not come back at the same moment.
class ReentryWaits {
 public:
  explicit ReentryWaits(std::uint64_t seed = std::random_device()()) : jitter_(seed) {}

  // How long to wait now. `was_in`: the company had admitted this process, so the waits begin anew.
  core::Duration span(bool was_in) {
    most_ = was_in
                ? core::Duration(actors::controller::limits::kRestartAfter)
                : std::min<core::Duration>(most_ * 2, actors::company::limits::kRestartAfter_max);
    return jitter_.of(most_);
  }
  // Waits that long. Returns false when the user asks to stop.
  bool next(bool was_in) {
    const auto until = std::chrono::steady_clock::now() + span(was_in);
    while (!cli::stop_requested() && std::chrono::steady_clock::now() < until)
      ::usleep(20'000);
    return !cli::stop_requested();
  }

 private:
  core::Jitter jitter_;
  core::Duration most_ = actors::controller::limits::kRestartAfter;
};

}  // namespace troupe::app
