// The barrier of a parallel region: a short spin, then a futex.
#include "runtime/core/team.hpp"

#include <immintrin.h>

#include <chrono>

namespace troupe::core {

void TeamBarrier::arrive_and_wait() noexcept {
  const std::uint32_t phase = phase_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.fetch_add(1, std::memory_order_release);
    phase_.notify_all();
    return;
  }
  const auto limit = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
  for (;;) {
    for (int i = 0; i < 64; ++i) {
      if (phase_.load(std::memory_order_acquire) != phase) return;
      _mm_pause();
    }
    if (std::chrono::steady_clock::now() >= limit) break;
  }
  while (phase_.load(std::memory_order_acquire) == phase) phase_.wait(phase);
}

}  // namespace troupe::core
