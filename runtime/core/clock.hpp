// The runtime's clock: monotonic, and replaceable so that tests and the simulator control time.
// Whoever builds the runtime owns the clock and passes it down. Methods are safe on any thread.
#pragma once

#include <atomic>
#include <chrono>

namespace troupe::core {

using Duration = std::chrono::nanoseconds;
// Time since an arbitrary start; only differences are meaningful.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const noexcept = 0;
};

class SteadyClock final : public Clock {
 public:
  TimePoint now() const noexcept override { return std::chrono::steady_clock::now(); }
};

// The clock of this process, where no other is passed down.
inline const Clock& steady_clock() noexcept {
  static const SteadyClock clock;
  return clock;
}

// Stands still until `advance` is called.
class ManualClock final : public Clock {
 public:
  TimePoint now() const noexcept override {
    return TimePoint(Duration(now_ns_.load(std::memory_order_acquire)));
  }
  void advance(Duration by) noexcept { now_ns_.fetch_add(by.count(), std::memory_order_acq_rel); }

 private:
  std::atomic<Duration::rep> now_ns_{0};
};

}  // namespace troupe::core
