// Deadlines, and the timers behind them. Roles never touch a raw timer: they wait through `Timers`,
// which runs on the steady clock in a process and on a virtual clock in the simulator.
#pragma once

#include "runtime/async/event.hpp"
#include "runtime/async/task.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"

#include <functional>
#include <memory>
#include <utility>

namespace troupe::async {

// The latest end of a wait. `none()` is for waits on one's own queue, which `close` ends; a wait
// for a peer always has a deadline.
struct Deadline {
  core::TimePoint at = core::TimePoint::max();

  static Deadline none() { return {}; }
  static Deadline after(const core::Clock& clock, core::Duration span) {
    return {clock.now() + span};
  }
  bool is_none() const noexcept { return at == core::TimePoint::max(); }
  // The time left, at least zero; the longest duration without a deadline.
  core::Duration remaining(const core::Clock& clock) const noexcept {
    if (is_none()) return core::Duration::max();
    const auto now = clock.now();
    return at > now ? core::Duration(at - now) : core::Duration::zero();
  }
  friend auto operator<=>(const Deadline&, const Deadline&) = default;
};

// An armed timer; destroying it disarms it. When destroyed on the timer's executor, the callback
// never runs afterwards.
class Timer {
 public:
  struct State {
    virtual ~State() = default;
    virtual void disarm() = 0;
  };
  Timer() = default;
  explicit Timer(std::shared_ptr<State> state) : state_(std::move(state)) {}
  Timer(Timer&&) noexcept = default;
  Timer& operator=(Timer other) noexcept {
    state_.swap(other.state_);
    return *this;
  }
  ~Timer() { disarm(); }

  void disarm() {
    if (state_) std::exchange(state_, nullptr)->disarm();
  }

 private:
  std::shared_ptr<State> state_;
};

// A clock that can also call back. Whoever builds the runtime owns it; it outlives every timer.
class Timers : public core::Clock {
 public:
  // Calls `fire` once on `executor`, at `at` or soon after, never inside this call.
  [[nodiscard]] virtual Timer arm(Executor executor,
                                  core::TimePoint at,
                                  std::function<void()> fire) = 0;
};

// The steady clock and Asio's timers.
class SteadyTimers final : public Timers {
 public:
  core::TimePoint now() const noexcept override { return std::chrono::steady_clock::now(); }
  Timer arm(Executor executor, core::TimePoint at, std::function<void()> fire) override;
};

task<void> sleep_until(Timers& timers, core::TimePoint at);
task<void> sleep_for(Timers& timers, core::Duration span);

// Waits for the value; returns the error `late` when the deadline comes first.
template <class T>
task<core::Result<T>> take_until(Timers& timers,
                                 std::shared_ptr<Oneshot<core::Result<T>>> oneshot,
                                 Deadline deadline,
                                 core::Error late) {
  Timer timer;
  if (!deadline.is_none()) {
    auto executor = co_await boost::asio::this_coro::executor;
    std::function<void()> fire = [oneshot, late] { oneshot->set(core::fail(late)); };
    timer = timers.arm(std::move(executor), deadline.at, std::move(fire));
  }
  auto taken = co_await Oneshot<core::Result<T>>::take(oneshot);
  co_return taken;
}

}  // namespace troupe::async
