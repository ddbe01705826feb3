// CallGate limits how many calls of one kind are in flight, so that many at once do not fill the
// peer's inbox. Owned by a role, on its strand. Bound of the calls that wait: set by the callers.
#pragma once

#include "runtime/async/event.hpp"
#include "runtime/async/notifier.hpp"
#include "runtime/async/task.hpp"

#include <cstddef>
#include <list>
#include <memory>

namespace troupe::actors {

// Lets at most `calls_max` calls in; further ones wait in order.
class CallGate {
 public:
  explicit CallGate(std::size_t calls_max) : calls_max_(calls_max) {}
  CallGate(const CallGate&) = delete;
  CallGate& operator=(const CallGate&) = delete;

  // Waits for a free place; `leave` must follow.
  async::task<void> enter() {
    if (inside_ < calls_max_) {
      ++inside_;
      co_return;
    }
    auto turn = std::make_shared<async::Event>();
    const async::Listed<async::Event> listed(waiting_, turn);
    co_await async::Event::wait(turn);
  }

  // Frees the place, or hands it to the first call that still waits.
  void leave() {
    for (const auto& turn : waiting_) {
      if (turn->fire()) return;
    }
    --inside_;
  }

 private:
  const std::size_t calls_max_;
  std::size_t inside_ = 0;
  std::list<std::shared_ptr<async::Event>> waiting_;
};

}  // namespace troupe::actors
