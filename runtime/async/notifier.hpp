// Wakes every coroutine that waits for "something changed": the way a handler waits for a condition
// over its role's state. Owned by the role; all calls on its strand. Waiters check their condition
// again after each wake. Bound: the number of handlers, which the role's inbox bounds.
#pragma once

#include <list>
#include <memory>

#include "runtime/async/deadline.hpp"

namespace troupe::async {

class Notifier {
 public:
  explicit Notifier(Timers& timers) : timers_(timers) {}
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  // Wakes all that wait now. Later waiters wait for the next call.
  void notify_all();

  // True when notified, false when the deadline came first.
  task<bool> wait(Deadline deadline);

  std::size_t waiting() const noexcept { return waiters_.size(); }

 private:
  using Signal = Oneshot<core::Result<bool>>;

  Timers& timers_;
  std::list<std::shared_ptr<Signal>> waiters_;
};

}  // namespace troupe::async
