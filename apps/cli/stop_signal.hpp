// Handles SIGINT and SIGTERM: the first signal asks the program to stop at the next safe point, the
// second ends it at once with status 130. SIGTERM may have a limit, after which the program ends in
// any case. Main installs the handlers before it starts threads; functions are safe on any thread.
#pragma once

#include "runtime/core/clock.hpp"

#include <atomic>
#include <optional>
#include <string>

namespace troupe::cli {

// Installs the handlers, and ignores SIGPIPE.
void install_stop_signal();

// Sets a function that the handler of the second signal calls before it ends the program, such as
// one that restores the terminal. It must be async-signal-safe. Null: none.
void before_forced_end(void (*hook)()) noexcept;

// Restores the default, by which the first signal ends the program: for commands that have nothing
// to finish.
void leave_stop_signal();

// From now on SIGTERM gives the program that many seconds to end (0: as many as it needs). At their
// end it is ended as by a second signal; `last_words` says what that means for the user.
void limit_stop(unsigned seconds, const std::string& last_words);
// When the program will be ended; nothing without a SIGTERM that has a limit.
std::optional<core::TimePoint> stop_deadline() noexcept;
// Ends the program as a second signal would, with these words.
[[noreturn]] void end_at_once(const std::string& words);

// True once a signal has arrived. The reference stays valid until the process ends.
const std::atomic<bool>& stop_requested() noexcept;

// Forgets the signal. `chat` calls this when the signal only ended one answer.
void clear_stop_request() noexcept;

}  // namespace troupe::cli
