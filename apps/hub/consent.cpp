#include "apps/hub/consent.hpp"

#include "runtime/core/bool_word.hpp"

#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace troupe::hub {

bool said_yes() {
  const char* const value = std::getenv("TROUPE_YES");
  return value != nullptr && core::bool_word(value).value_or(false);
}

void say_yes() {
  ::setenv("TROUPE_YES", "1", 1);
}

void stay_offline() {
  ::setenv("HF_HUB_OFFLINE", "1", 1);
}

bool can_ask() {
  return ::isatty(STDIN_FILENO) != 0 && ::isatty(STDERR_FILENO) != 0;
}

bool ask(const std::string& question) {
  std::fprintf(stderr, "%s [y/N] ", question.c_str());
  std::fflush(stderr);
  pollfd ready = {STDIN_FILENO, POLLIN, 0};
  if (::poll(&ready, 1, -1) != 1) return false;  // a signal
  std::string answer;
  for (int c = std::getchar(); c != EOF && c != '\n'; c = std::getchar())
    answer += static_cast<char>(c);
  return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace troupe::hub
