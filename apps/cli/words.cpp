#include "apps/cli/words.hpp"

#include "runtime/core/error_list.hpp"
#include "runtime/core/foreign_text.hpp"
#include "runtime/observe/terminal_text.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <utility>

namespace troupe::cli {
namespace {

// A text in which words of others may stand: they make no lines that look like ours.
std::string shown(std::string_view text) {
  return core::barred(observe::terminal_safe(text));
}

// The text of one mistake; its advice gets a line of its own.
std::string mistake_text(const core::Error& mistake) {
  std::string text = "error: " + shown(mistake.what()) + "\n";
  if (const auto advice = mistake.advice(); !advice.empty())
    text += "  hint: " + shown(advice) + "\n";
  return text;
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
  if (error.code == ErrorCode::kInterrupted) return error.message + "\n";
  std::string text;
  for (const core::Error& mistake : core::single_errors(error))
    text += mistake_text(mistake);
  return text;
}

void say(const std::string& text) {
  tell_ear(text);
  std::printf("%s\n", observe::terminal_safe(text).c_str());
  std::fflush(stdout);
}

void warn(const std::string& text) {
  const std::string safe = shown(text);
  tell_ear("warning: " + safe);
  std::fprintf(stderr, "warning: %s\n", safe.c_str());
}

void overhear(std::function<void(const std::string&)> to) {
  const std::lock_guard lock(ear_mutex);
  ear = std::move(to);
}

}  // namespace troupe::cli
