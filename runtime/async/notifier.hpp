// Wakes every coroutine that waits for "something changed", as a condition variable does for
// threads: a waiter checks its condition over the role's state again after each wake. Owned by the
// role; all calls on its strand. Bound: the number of handlers, which the role's inbox bounds.
#pragma once

#include "runtime/async/deadline.hpp"

#include <list>
#include <memory>

namespace troupe::async {

// Keeps a waiter on a list, and takes it off however its wait ends: value, deadline, close or
// cancellation. Lives in the waiting coroutine's frame; the list's owner outlives the wait.
template <class Waiter>
class Listed {
 public:
  using List = std::list<std::shared_ptr<Waiter>>;

  Listed(List& list, std::shared_ptr<Waiter> waiter)
      : list_(list), place_(list.insert(list.end(), std::move(waiter))) {}
  Listed(const Listed&) = delete;
  Listed& operator=(const Listed&) = delete;
  ~Listed() { list_.erase(place_); }

 private:
  List& list_;
  typename List::iterator place_;
};

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
