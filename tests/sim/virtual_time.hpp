// Time for the simulator: nothing happens but what a queue of events says, on one thread, and the
// clock jumps from one event to the next. The same events in the same order give the same run.
// Owned by the test or the simulation program; every role of a simulation runs on its executor.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "runtime/async/deadline.hpp"
#include "runtime/async/task.hpp"

#include <boost/asio/io_context.hpp>

namespace troupe::cluster::sim {

class VirtualTime final : public async::Timers {
 public:
  VirtualTime() = default;

  core::TimePoint now() const noexcept override { return now_; }
  async::Timer arm(async::Executor executor, core::TimePoint at,
                   std::function<void()> fire) override;

  // Calls `event` at `at`, after those scheduled for the same time before it.
  void schedule(core::TimePoint at, std::function<void()> event);

  async::Executor make_strand();

  // Runs handlers and events until nothing is left to happen. False when `steps_max` was not enough.
  bool run_until_quiet(std::uint64_t steps_max);

  // The same, but no event later than `span` from now; then the clock stands at that time.
  bool run_for(core::Duration span, std::uint64_t steps_max);

  std::uint64_t steps() const noexcept { return steps_; }

 private:
  bool run_until(core::TimePoint end, std::uint64_t steps_max);

  boost::asio::io_context context_{1};
  core::TimePoint now_{};
  std::uint64_t sequence_ = 0;
  std::uint64_t steps_ = 0;
  std::map<std::pair<core::TimePoint, std::uint64_t>, std::function<void()>> events_;
};

}  // namespace troupe::cluster::sim
