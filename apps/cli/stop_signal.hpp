// SIGINT and SIGTERM: the first asks the program to stop at the next good moment, the second ends
// it at once with status 130. One per process, made by main before any thread; `requested` is safe
// on any thread.
#pragma once

#include <atomic>

namespace troupe::app {

// Takes the two signals over.
void install_stop_signal();

// Called in the signal's handler before the second one ends the program, for what would outlive it.
// Null: nothing.
void before_forced_end(void (*hook)()) noexcept;

// Gives them back: the first ends the program. For commands that bring nothing to an end.
void leave_stop_signal();

// True once a signal came in. The reference is good for the life of the process.
const std::atomic<bool>& stop_requested() noexcept;

// For `chat`: a request that only ended one answer is over.
void clear_stop_request() noexcept;

}  // namespace troupe::app
