#include "runtime/core/team.hpp"

#include <immintrin.h>

#include <algorithm>
#include <chrono>

namespace troupe::core {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kLine_bytes = 64;
constexpr std::int64_t kFetch_bytes_max = 128 << 10;   // a fraction of an L2 cache
constexpr auto kSpin = std::chrono::microseconds(20);  // spins this long before sleeping

thread_local std::uint64_t waited_ns = 0;

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
  const Clock::time_point start = Clock::now();
  const auto all_here = [&] { return phase_.load(std::memory_order_acquire) != phase; };
  const char* line = static_cast<const char*>(next.data);
  const char* const end = line + std::min(next.bytes, kFetch_bytes_max);
  do {
    for (int i = 0; i < 64 && !all_here(); ++i) {
      if (line < end) {
        _mm_prefetch(line, _MM_HINT_T1);
        line += kLine_bytes;
      } else {
        _mm_pause();
      }
    }
  } while (!all_here() && Clock::now() - start < kSpin);
  while (!all_here())
    phase_.wait(phase);
  const std::chrono::nanoseconds waited = Clock::now() - start;
  waited_ns += static_cast<std::uint64_t>(waited.count());
}

}  // namespace troupe::core
