// Hosts RewardCalls outside of a role, for commands: the thread on whose strand they run, timers,
// and a device queue. Used from the thread that makes it.
#pragma once

#include "actors/reward/reward_calls.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/async/run_on.hpp"

#include <memory>
#include <utility>

namespace troupe::actors::reward {

class CallsHost {
 public:
  explicit CallsHost(std::unique_ptr<RewardCalls> calls);
  CallsHost(const CallsHost&) = delete;
  CallsHost& operator=(const CallsHost&) = delete;
  ~CallsHost();  // cancels what the calls still do, and waits for it

  RewardCalls& calls() noexcept { return *calls_; }
  // Its only thread: what else runs there never runs alongside the calls.
  async::IoThreads& io() noexcept { return io_; }
  // Runs `body` where the calls are made, and waits for its end.
  template <class T>
  T run(async::task<T> body) {
    return io_.run(async::run_on(scope_.executor(), std::move(body)));
  }

 private:
  async::IoThreads io_{1};
  async::SteadyTimers timers_;
  async::DeviceThread device_{"reward"};
  std::unique_ptr<RewardCalls> calls_;
  async::Scope scope_;
};

}  // namespace troupe::actors::reward
