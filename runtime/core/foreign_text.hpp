// Text that others wrote (tracebacks, answers of servers, prompts) in a message of ours: bounded,
// without control characters, and marked, so that no word of it can pass for one of ours. It stands
// last; facts that are added later go in front of it. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::core {

// The beginning of the text on one line, in quotes.
std::string quoted(std::string_view text, std::size_t bytes_max);

// The text on lines of its own, each behind a bar; what ends in ':' goes in front of it. Of a long
// one the end stays, where a traceback has its exception, or the exception, if more follows it.
std::string quoted_lines(std::string_view text);

// What others said, behind a colon of ours: one line as it is, several as quoted lines.
std::string foreign(std::string_view text);

// Puts a bar in front of all lines but the first, so that foreign lines never look like ours.
std::string barred(std::string_view text);

// The message with another fact: behind "; ", in front of quoted lines.
std::string with_fact(std::string_view message, std::string_view fact);

// The message on one line: of quoted lines the one that says what went wrong, which is the
// exception of the last traceback or else the last line.
std::string gist_of(std::string_view message);

}  // namespace troupe::core
