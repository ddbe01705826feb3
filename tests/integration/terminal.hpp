// A program at a terminal of its own.
#pragma once

#include "within.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::test {

// All that stands on its screen, in order.
class Terminal {
 public:
  // `variables`: of its environment, besides those of this process. `columns`: 0: not known.
  explicit Terminal(std::vector<std::string> words,
                    const std::map<std::string, std::string>& variables = {},
                    unsigned short columns = 0) {
    std::vector<char*> argv;
    for (auto& word : words)
      argv.push_back(word.data());
    argv.push_back(nullptr);
    winsize size = {24, columns, 0, 0};
    pid_ = ::forkpty(&fd_, nullptr, nullptr, columns > 0 ? &size : nullptr);
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const auto& [name, value] : variables)
      ::setenv(name.c_str(), value.c_str(), 1);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  ~Terminal() {
    if (!ended_) ::kill(pid_, SIGKILL);
    if (!ended_) ::waitpid(pid_, nullptr, 0);
    ::close(fd_);
  }
  void type(const std::string& keys) const {
    EXPECT_EQ(::write(fd_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  // Waits until `part` is seen behind the first `from` bytes.
  bool shows(const std::string& part, std::size_t from = 0) {
    while (screen_.find(part, from) == screen_.npos && more()) {
    }
    return screen_.find(part, from) != screen_.npos;
  }
  bool shows_more_than(std::size_t bytes) {
    while (screen_.size() <= bytes && more()) {
    }
    return screen_.size() > bytes;
  }
  std::optional<int> ends() {
    while (more()) {
    }
    int status = 0;
    ended_ = within(30, [&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; });
    return ended_ && WIFEXITED(status) ? std::optional(WEXITSTATUS(status)) : std::nullopt;
  }
  bool echoes() const {
    termios now = {};
    return ::tcgetattr(fd_, &now) == 0 && (now.c_lflag & ECHO) != 0 && (now.c_lflag & ICANON) != 0;
  }
  // As a user who changes the size of the window.
  void resize(unsigned short columns) const {
    const winsize size = {24, columns, 0, 0};
    EXPECT_EQ(::ioctl(fd_, TIOCSWINSZ, &size), 0);
  }
  const std::string& screen() const { return screen_; }
  std::size_t count(const std::string& part) const {
    std::size_t found = 0;
    for (auto at = screen_.find(part); at != screen_.npos; at = screen_.find(part, at + 1))
      ++found;
    return found;
  }

 private:
  bool more() {
    pollfd ready = {fd_, POLLIN, 0};
    char bytes[4096];
    if (::poll(&ready, 1, 60'000) != 1) return false;
    const auto size = ::read(fd_, bytes, sizeof bytes);
    if (size <= 0) return false;  // EIO: the program is gone
    screen_.append(bytes, static_cast<std::size_t>(size));
    return true;
  }

  pid_t pid_ = -1;
  int fd_ = -1;
  bool ended_ = false;
  std::string screen_;
};

}  // namespace troupe::test
