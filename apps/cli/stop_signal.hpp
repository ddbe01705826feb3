// Handles SIGINT and SIGTERM: the first asks the program to stop at the next safe point, the second
// ends it at once with status 130. Installed by main before any thread; `stop_requested` is safe on
// any.
#pragma once

#include <atomic>

namespace troupe::app {

// Installs the handlers.
void install_stop_signal();

// Sets a function that the handler of the second signal calls before the program ends, to end what
// would outlive it. Null: none.
void before_forced_end(void (*hook)()) noexcept;

// Restores the default: the first signal ends the program. For commands without work to finish.
void leave_stop_signal();

// True once a signal came in. The reference is good for the life of the process.
const std::atomic<bool>& stop_requested() noexcept;

// For `chat`: a request that only ended one answer is over.
void clear_stop_request() noexcept;

}  // namespace troupe::app
