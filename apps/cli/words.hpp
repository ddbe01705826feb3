// The words of a command line, and text for the user. On the main thread where nothing else is
// said.
#pragma once

#include "runtime/core/result.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace troupe::cli {

// What every command returns.

using Words = std::span<const std::string>;

// True when one of the words is --help or -h.
bool wants_help(Words words);

// The text that shows an error: for each mistake in it a line `error: what` and, if it has advice,
// a line `  hint: advice`. For an interruption, which the user asked for, only its message.
std::string error_text(const core::Error& error);

// Prints `text` and a newline on standard output and flushes it. Any thread.
void say(const std::string& text);
// Prints `text` on standard error, with "warning: " in front.
void warn(const std::string& text);

// From now on `ear` is also given what `say` and `warn` print. It must be quick and may be called
// on any thread. Null: nobody is.
void overhear(std::function<void(const std::string&)> ear);

}  // namespace troupe::cli
