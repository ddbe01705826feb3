// Lets one coroutine at a time through a section of a role that waits. Owned by the role, used on
// its strand; outlives the turns that it gives.
#pragma once

#include "runtime/async/notifier.hpp"
#include "runtime/async/task.hpp"

#include <memory>
#include <utility>

namespace troupe::async {

class Turns {
 public:
  explicit Turns(Timers& timers) : over_(timers) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Waits until the turn is free; the caller has it until the returned object is destroyed.
  task<std::shared_ptr<void>> take() {
    while (std::exchange(taken_, true))
      co_await over_.wait(Deadline::none());
    co_return std::shared_ptr<void>(nullptr, [this](void*) {
      taken_ = false;
      over_.notify_all();
    });
  }

 private:
  Notifier over_;
  bool taken_ = false;
};

}  // namespace troupe::async
