#include "apps/troupe/line_input.hpp"

#include "apps/cli/stop_signal.hpp"
#include "runtime/observe/terminal_text.hpp"

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <utility>

namespace troupe::app {

namespace {

termios before = {};  // as the terminal was; the signal's handler needs it, too

void listen() {
  ::tcsetattr(0, TCSANOW, &before);
}

}  // namespace

LineInput::LineInput() : interactive_(::isatty(0) == 1 && ::tcgetattr(0, &before) == 0) {
  if (interactive_) before_forced_end(&listen);
  be_quiet();
}

LineInput::~LineInput() {
  if (!interactive_) return;
  before_forced_end(nullptr);
  listen();
}

// Signals stay, and do not throw away what was typed.
void LineInput::be_quiet() const {
  if (!interactive_) return;
  termios quiet = before;
  quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL | ICANON);
  quiet.c_lflag |= NOFLSH;
  quiet.c_cc[VMIN] = 1;
  quiet.c_cc[VTIME] = 0;
  ::tcsetattr(0, TCSANOW, &quiet);
}

// With the keys that edit a line, which the terminal leaves to us while it is quiet.
void LineInput::take_typed() {
  pollfd ready = {0, POLLIN, 0};
  while (!ended_ && ::poll(&ready, 1, 0) == 1 && (ready.revents & POLLIN) != 0) {
    char byte = 0;
    if (::read(0, &byte, 1) != 1) return;
    const bool begun = !typed_.empty() && typed_.back() != '\n';
    if (byte == static_cast<char>(before.c_cc[VEOF])) {
      ended_ = !begun;
    } else if (byte == static_cast<char>(before.c_cc[VERASE])) {
      while (!typed_.empty() && (typed_.back() & 0xc0) == 0x80)
        typed_.pop_back();
      if (begun && !typed_.empty() && typed_.back() != '\n') typed_.pop_back();
    } else if (byte == static_cast<char>(before.c_cc[VKILL])) {
      typed_.erase(typed_.rfind('\n') + 1);
    } else if (byte == '\n' || byte == '\t' || static_cast<unsigned char>(byte) >= 0x20) {
      typed_ += byte;
    }
  }
}

std::optional<std::string> LineInput::typed_line() {
  const auto end = typed_.find('\n');
  if (end == typed_.npos) return std::nullopt;
  std::string line = typed_.substr(0, end);
  typed_.erase(0, end + 1);
  return line;
}

std::optional<std::string> LineInput::next(const char* prompt) {
  std::string begun;
  if (interactive_) {
    take_typed();
    const auto line = typed_line();
    begun = line ? *line : std::exchange(typed_, std::string());
    std::printf("%s%s%s", prompt, observe::terminal_safe(begun).c_str(), line ? "\n" : "");
    std::fflush(stdout);
    if (line) return line;
    if (ended_) return std::nullopt;
    listen();
  }
  std::string rest;
  const bool got = static_cast<bool>(std::getline(std::cin, rest));
  be_quiet();
  if (!got) return std::nullopt;
  return begun + rest;
}

}  // namespace troupe::app
