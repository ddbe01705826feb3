#include "apps/cli/words.hpp"

#include "runtime/core/error_list.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <utility>

namespace troupe::app {
namespace {

// Formats one message; the advice at its end gets a line of its own.
std::string message_text(std::string_view message) {
  const auto cut = message.rfind("; ");
  // A ';' inside parentheses belongs to the sentence.
  const bool inside = cut != message.npos && message.find(')', cut) != message.npos &&
                      message.find('(', cut) == message.npos;
  const std::string what(message.substr(0, inside ? message.npos : cut));
  if (cut == message.npos || inside) return "error: " + what + "\n";
  return "error: " + what + "\n  hint: " + std::string(message.substr(cut + 2)) + "\n";
}

// One for the process, as its standard output is.
std::mutex ear_mutex;
std::function<void(const std::string&)> ear;

void tell_ear(const std::string& text) {
  const std::lock_guard lock(ear_mutex);
  if (ear) ear(text);
}

}  // namespace

bool wants_help(Words words) {
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return word == "--help" || word == "-h"; });
}

std::string error_text(const core::Error& error) {
  if (error.code == core::ErrorCode::kInterrupted) return error.message + "\n";
  std::string text;
  for (const std::string_view message : core::single_messages(error.message))
    text += message_text(message);
  return text;
}

void say(const std::string& text) {
  tell_ear(text);
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

void warn(const std::string& text) {
  tell_ear("warning: " + text);
  std::fprintf(stderr, "warning: %s\n", text.c_str());
}

void overhear(std::function<void(const std::string&)> to) {
  const std::lock_guard lock(ear_mutex);
  ear = std::move(to);
}

}  // namespace troupe::app
