#include "runtime/core/team.hpp"

#include <immintrin.h>

#include <algorithm>
#include <chrono>

namespace troupe::core {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kLine_bytes = 64;
constexpr std::int64_t kFetch_bytes_max = 128 << 10;  // a part of a second-level cache

thread_local std::uint64_t waited_ns = 0;

// Counts the time from its making to its end.
class Wait {
 public:
  Clock::time_point start() const { return start_; }
  ~Wait() {
    const auto waited = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_);
    waited_ns += static_cast<std::uint64_t>(waited.count());
  }

 private:
  const Clock::time_point start_ = Clock::now();
};

}  // namespace

std::uint64_t barrier_wait_ns() noexcept {
  return waited_ns;
}

void TeamBarrier::arrive_and_wait(Upcoming next) noexcept {
  const std::uint32_t phase = phase_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.fetch_add(1, std::memory_order_release);
    phase_.notify_all();
    return;
  }
  const Wait wait;
  const auto limit = wait.start() + std::chrono::microseconds(20);
  const char* line = static_cast<const char*>(next.data);
  const char* const end = line + std::min(next.bytes, kFetch_bytes_max);
  for (;;) {
    for (int i = 0; i < 64; ++i) {
      if (phase_.load(std::memory_order_acquire) != phase) return;
      if (line < end) {
        _mm_prefetch(line, _MM_HINT_T1);
        line += kLine_bytes;
      } else {
        _mm_pause();
      }
    }
    if (Clock::now() >= limit) break;
  }
  while (phase_.load(std::memory_order_acquire) == phase)
    phase_.wait(phase);
}

}  // namespace troupe::core
