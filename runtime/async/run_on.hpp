// From one strand to another: hand over a function, or await a coroutine that runs there. For those
// who wire roles together; roles themselves send messages.
#pragma once

#include "runtime/async/task.hpp"

#include <functional>

namespace troupe::async {

// Runs `what` on the executor, later, never inside this call. Any thread.
void post(const Executor& executor, std::function<void()> what);

// Awaits `body` while it runs on the executor; the caller goes on upon its own.
task<void> run_on(Executor executor, task<void> body);

}  // namespace troupe::async
