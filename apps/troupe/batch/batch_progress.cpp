#include "apps/troupe/batch/batch_progress.hpp"

#include "runtime/core/texts.hpp"
#include "runtime/observe/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

namespace troupe::app {

BatchProgress::BatchProgress(std::string verb,
                             std::string unit,
                             std::uint64_t first,
                             std::uint64_t all)
    : verb_(std::move(verb)),
      unit_(std::move(unit)),
      first_(first),
      all_(all),
      live_(::isatty(STDERR_FILENO) == 1),
      begin_(clock_.now()),
      shown_(begin_) {
  if (first > 0) {
    std::fprintf(stderr, "going on after %lu of %lu %s\n", first, all, unit_.c_str());
  }
}

BatchProgress::~BatchProgress() {
  if (live_ && drawn_) std::fputc('\n', stderr);
}

void BatchProgress::at(std::uint64_t done, std::uint64_t tokens) {
  const core::TimePoint now = clock_.now();
  const auto pause = live_ ? std::chrono::milliseconds(200) : std::chrono::milliseconds(10'000);
  if (done < all_ && now - shown_ < pause) return;
  if (done == all_ && !live_ && !drawn_) return;  // done before the first line: print none
  shown_ = now;
  drawn_ = true;
  const double seconds = std::max(std::chrono::duration<double>(now - begin_).count(), 1e-9);
  std::string text =
      verb_ + " " + std::to_string(done) + " of " + std::to_string(all_) + " " + unit_;
  if (tokens > 0) text += core::printed(", %.0f tokens/s", static_cast<double>(tokens) / seconds);
  if (done > first_ && done < all_) {
    text += ", " +
            observe::duration_text(seconds * static_cast<double>(all_ - done) /
                                   static_cast<double>(done - first_)) +
            " to go";
  }
  std::fprintf(stderr, live_ ? "\r\x1b[K%s" : "%s\n", text.c_str());
  std::fflush(stderr);
}

}  // namespace troupe::app
