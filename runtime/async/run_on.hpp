// Runs a function or a coroutine on another strand. Meant for the code that starts and connects
// roles; roles themselves send messages.
#pragma once

#include "runtime/async/task.hpp"

#include <functional>
#include <optional>
#include <utility>

namespace troupe::async {

// Runs `what` on the executor, later, never inside this call. Any thread.
void post(const Executor& executor, std::function<void()> what);

// Awaits `body` while it runs on the executor; the caller resumes on its own.
task<void> run_on(Executor executor, task<void> body);

// The same for a body with a value, which it returns.
template <class T>
task<T> run_on(Executor executor, task<T> body) {
  std::optional<T> value;
  auto stored = detail::store(std::move(body), &value);
  co_await run_on(std::move(executor), std::move(stored));
  co_return std::move(*value);
}

}  // namespace troupe::async
