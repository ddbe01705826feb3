// Time for the simulator: nothing happens but what a queue of events says, on one thread, and the
// clock jumps from one event to the next. The same events in the same order give the same run.
// Owned by the test or the simulation program; every role of a simulation runs on its executors.
//
// A simulated process has VirtualThreads of its own. While they are frozen nothing runs on them:
// what is posted to them, timers included, waits and then runs in its order, as after SIGSTOP.
#pragma once

#include "runtime/async/deadline.hpp"
#include "runtime/async/task.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace troupe::cluster::sim {

class VirtualThreads {
 public:
  async::Executor make_strand();
  void freeze(bool frozen) { frozen_ = frozen; }
  bool frozen() const noexcept { return frozen_; }

 private:
  friend class VirtualTime;
  bool run_one();

  boost::asio::io_context context_{1};
  bool frozen_ = false;
};

class VirtualTime final : public async::Timers {
 public:
  VirtualTime() : threads_{std::make_shared<VirtualThreads>()} {}

  core::TimePoint now() const noexcept override { return now_ + passed_; }
  async::Timer arm(async::Executor executor,
                   core::TimePoint at,
                   std::function<void()> fire) override;

  // Calls `event` at `at`, after those scheduled for the same time before it.
  void schedule(core::TimePoint at, std::function<void()> event);

  // Of threads that are never frozen.
  async::Executor make_strand() { return threads_.front()->make_strand(); }
  std::shared_ptr<VirtualThreads> make_threads();

  // Runs `job` at this moment, and lets its clock go on by what it passes to `pass`. Returns how
  // long it took: the caller waits for so long.
  core::Duration run_job(const std::function<void()>& job);
  void pass(core::Duration span) { passed_ += span; }

  // Runs handlers and events until nothing is left to happen. False when `steps_max` was not
  // enough.
  bool run_until_quiet(std::uint64_t steps_max);

  // The same, but no event later than `span` from now; then the clock stands at that time.
  bool run_for(core::Duration span, std::uint64_t steps_max);

  std::uint64_t steps() const noexcept { return steps_; }

 private:
  bool run_until(core::TimePoint end, std::uint64_t steps_max);
  bool run_handler();

  std::vector<std::shared_ptr<VirtualThreads>> threads_;
  core::TimePoint now_{};
  core::Duration passed_{};  // within a job
  std::uint64_t sequence_ = 0;
  std::uint64_t steps_ = 0;
  std::map<std::pair<core::TimePoint, std::uint64_t>, std::function<void()>> events_;
};

}  // namespace troupe::cluster::sim
