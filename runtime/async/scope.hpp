// Structured concurrency: coroutines are started in a scope, which waits for all of them before it
// ends. These children run on the scope's executor; the first one that fails cancels its siblings.
// Owned by a role host or by the coroutine that opened it; all calls on its executor. The number of
// children has no bound of its own: whoever spawns one per request bounds the requests (a role's
// inbox does).
//
//   with_scope(body, args...)   a scope inside a coroutine; safe when the coroutine is cancelled
//   all(tasks)                  fan out, wait for all, first error wins
#pragma once

#include "runtime/async/event.hpp"
#include "runtime/async/task.hpp"
#include "runtime/core/result.hpp"

#include <boost/asio/cancellation_signal.hpp>

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::async {

class Scope {
 public:
  explicit Scope(Executor executor);
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope();  // checks that no child is left

  // Starts `child` later, never inside this call. `name` is put in front of its error. After
  // `cancel` the child is dropped unstarted. An exception other than cancellation becomes the error
  // kInternal.
  void spawn(std::string name, task<core::Result<void>> child);
  void spawn(std::string name, task<void> child);

  // Cancels all children, and those that are spawned later. Idempotent.
  void cancel();

  // Waits for all children, also those spawned meanwhile; cancelling the waiter cancels them.
  // Returns the first error; children that unwound because of `cancel` do not count as one. One
  // waiter at a time. A coroutine that may be cancelled must not hold a scope of its own: it uses
  // `with_scope` or `all`.
  task<core::Result<void>> join();

  std::size_t children() const noexcept { return children_.size(); }
  bool cancelled() const noexcept { return cancelled_; }
  const Executor& executor() const noexcept { return executor_; }

  // Called at the first error, before the siblings are cancelled.
  void on_error(std::function<void(const core::Error&)> hook) { error_hook_ = std::move(hook); }

 private:
  struct Child {
    std::string name;
    task<core::Result<void>> body;
    boost::asio::cancellation_signal signal;
    bool started = false;
    std::optional<core::Error> error;
  };
  using Place = std::list<Child>::iterator;

  static task<void> supervise(Scope* scope, Place place);
  void start(Place place);
  void finish(Place place);

  Executor executor_;
  std::list<Child> children_;
  std::shared_ptr<Event> empty_;  // made by join
  std::optional<core::Error> error_;
  std::function<void(const core::Error&)> error_hook_;
  bool cancelled_ = false;
};

// Runs `body(scope, args...)`, a named coroutine, as the first child of a new scope on the current
// executor and waits for all children. Returns the first error.
template <class Body, class... Args>
task<core::Result<void>> with_scope(Body body, Args... args) {
  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  Scope scope(co_await boost::asio::this_coro::executor);
  scope.spawn("", body(scope, std::move(args)...));
  auto result = co_await scope.join();
  co_await boost::asio::this_coro::throw_if_cancelled(throws);
  co_return result;
}

// Runs all tasks at once; returns when all have ended, with the first error if there was one.
task<core::Result<void>> all(std::vector<task<core::Result<void>>> tasks);

}  // namespace troupe::async
