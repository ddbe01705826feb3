// An Event lets one coroutine wait once for one thing to happen; every other wait here is built on
// it. Shared by the waiter and the one that fires it; all calls are made on the waiter's executor.
// When the waiter is cancelled, the cancel hook decides whether the wait ends at once or goes on
// until the event fires.
#pragma once

#include "runtime/async/task.hpp"

#include <boost/system/error_code.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace troupe::async {

class Event : public std::enable_shared_from_this<Event> {
 public:
  // Called when the waiter is cancelled before the event. True ends the wait at once by unwinding;
  // false keeps it waiting (and the next `co_await` after it unwinds).
  using CancelHook = std::function<bool()>;

  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  virtual ~Event();

  // True for the first call; false when the event has fired before or the waiter was cancelled, so
  // that no thread sees it. The waiter resumes later, never inside this call.
  bool fire();
  bool settled() const noexcept { return settled_; }  // fired, or cancelled
  void set_cancel_hook(CancelHook hook) { hook_ = std::move(hook); }

  // Returns once fired. Throws `operation_aborted` when cancelled. At most one waiter.
  static task<void> wait(std::shared_ptr<Event> event);

 private:
  struct Waiter {  // the suspended coroutine
    virtual ~Waiter() = default;
    virtual void resume(boost::system::error_code code) = 0;
  };
  template <class Handler>
  struct Suspended;
  struct Start;

  void on_cancel();
  void complete(boost::system::error_code code);

  bool settled_ = false;
  CancelHook hook_;
  std::unique_ptr<Waiter> waiter_;
  Executor executor_;  // tracks outstanding work while a coroutine waits
};

// An event that carries a value. `T` needs no default constructor.
template <class T>
class Oneshot final : public Event {
 public:
  // False when the event was settled before; `value` is then dropped.
  bool set(T value) {
    if (settled()) return false;
    value_.emplace(std::move(value));
    return fire();
  }

  static task<T> take(std::shared_ptr<Oneshot> self) {
    co_await Event::wait(self);
    co_return std::move(*self->value_);
  }

 private:
  std::optional<T> value_;
};

}  // namespace troupe::async
