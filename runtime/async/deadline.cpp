#include "runtime/async/deadline.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

namespace troupe::async {

namespace asio = boost::asio;

namespace {

// Cancelling the timer is not enough, because its handler may be queued already. So `disarm` also
// clears `fire`, and the handler then does nothing.
struct SteadyState final : Timer::State {
  SteadyState(Executor executor, std::function<void()> callback)
      : timer(std::move(executor)), fire(std::move(callback)) {}
  void disarm() override {
    fire = nullptr;
    timer.cancel();
  }
  asio::steady_timer timer;
  std::function<void()> fire;
};

}  // namespace

Timer SteadyTimers::arm(Executor executor, core::TimePoint at, std::function<void()> fire) {
  auto state = std::make_shared<SteadyState>(std::move(executor), std::move(fire));
  state->timer.expires_at(std::chrono::time_point_cast<asio::steady_timer::duration>(at));
  state->timer.async_wait([state](const boost::system::error_code& code) {
    if (code || !state->fire) return;
    const auto callback = std::exchange(state->fire, nullptr);
    callback();
  });
  return Timer(state);
}

task<void> sleep_until(Timers& timers, core::TimePoint at) {
  auto event = std::make_shared<Event>();
  auto executor = co_await asio::this_coro::executor;
  std::function<void()> fire = [event] { event->fire(); };
  const Timer timer = timers.arm(std::move(executor), at, std::move(fire));
  co_await Event::wait(event);
}

task<void> sleep_for(Timers& timers, core::Duration span) {
  const core::TimePoint at = timers.now() + span;
  co_await sleep_until(timers, at);
}

}  // namespace troupe::async
