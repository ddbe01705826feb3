// From one strand to another: hand over a function, or await a coroutine that runs there. For those
// who wire roles together; roles themselves send messages.
#pragma once

#include "runtime/async/task.hpp"

#include <functional>
#include <optional>
#include <utility>

namespace troupe::async {

// Runs `what` on the executor, later, never inside this call. Any thread.
void post(const Executor& executor, std::function<void()> what);

// Awaits `body` while it runs on the executor; the caller goes on upon its own.
task<void> run_on(Executor executor, task<void> body);

// The same with the value that it gives.
template <class T>
task<T> run_on(Executor executor, task<T> body) {
  std::optional<T> value;
  auto stored = detail::store(std::move(body), &value);
  co_await run_on(std::move(executor), std::move(stored));
  co_return std::move(*value);
}

}  // namespace troupe::async
