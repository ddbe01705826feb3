// Runs a function or a coroutine on another strand. Meant for the code that starts and connects
// roles; roles themselves send messages.
#pragma once

#include "runtime/async/event.hpp"
#include "runtime/async/scope.hpp"
#include "runtime/async/task.hpp"

#include <boost/asio/this_coro.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace troupe::async {

// Runs `what` on the executor, later, never inside this call. Any thread.
void post(const Executor& executor, std::function<void()> what);

// Awaits `body` while it runs on the executor; the caller resumes on its own.
task<void> run_on(Executor executor, task<void> body);

// Awaits a body with a value, which it returns.
template <class T>
task<T> run_on(Executor executor, task<T> body) {
  std::optional<T> value;
  auto stored = detail::store(std::move(body), &value);
  co_await run_on(std::move(executor), std::move(stored));
  co_return std::move(*value);
}

namespace detail {
template <class T>
task<void> run_and_tell(std::shared_ptr<task<T>> body,
                        std::shared_ptr<Oneshot<T>> answer,
                        Executor to) {
  auto value = std::make_shared<T>(co_await std::move(*body));
  post(to, [answer, value] { answer->set(std::move(*value)); });
}
}  // namespace detail

// Awaits `body` while it runs as a child of `scope`, on that scope's executor. Unlike in `run_on`,
// the awaiter may be cancelled: the body then goes on, and its value is dropped. The scope outlives
// the call; one that is cancelled gives no answer.
template <class T>
task<T> run_apart(Scope* scope, task<T> body) {
  auto answer = std::make_shared<Oneshot<T>>();
  auto shared = std::make_shared<task<T>>(std::move(body));
  const Executor here = co_await boost::asio::this_coro::executor;
  post(scope->executor(), [scope, shared, answer, here] {
    scope->spawn("", detail::run_and_tell<T>(shared, answer, here));
  });
  auto taken = co_await Oneshot<T>::take(answer);
  co_return taken;
}

}  // namespace troupe::async
