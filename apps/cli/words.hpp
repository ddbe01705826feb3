// The words of a command line, and output for the user. On the main thread.
#pragma once

#include "runtime/core/result.hpp"

#include <span>
#include <string>

namespace troupe::app {

using Words = std::span<const std::string>;

// True when one of the words asks for help.
bool wants_help(Words words);

// `error: what` and, when the message ends in "; advice", `  hint: advice` below it, for each thing
// that is wrong. An interruption is what the user asked for: its message alone.
std::string error_text(const core::Error& error);

// A line on standard output, at once.
void say(const std::string& text);

}  // namespace troupe::app
