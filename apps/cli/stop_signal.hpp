// Handles SIGINT and SIGTERM: the first signal asks the program to stop at the next safe point, the
// second ends it at once with status 130. Main installs the handlers before it starts threads;
// `stop_requested` is safe on any thread.
#pragma once

#include <atomic>

namespace troupe::app {

// Installs the handlers, and ignores SIGPIPE.
void install_stop_signal();

// Sets a function that the handler of the second signal calls before it ends the program, such as
// one that restores the terminal. It must be async-signal-safe. Null: none.
void before_forced_end(void (*hook)()) noexcept;

// Restores the default, by which the first signal ends the program: for commands that have nothing
// to finish.
void leave_stop_signal();

// True once a signal has arrived. The reference stays valid until the process ends.
const std::atomic<bool>& stop_requested() noexcept;

// Forgets the signal. `chat` calls this when the signal only ended one answer.
void clear_stop_request() noexcept;

}  // namespace troupe::app
