// What a signal that asks a program to stop does to what the program is printing.
#include "apps/cli/stop_signal.hpp"

#include "apps/cli/words.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>

namespace troupe::cli {
namespace {

// A process that prints a line that fills its pipe, and then another.
class Printer {
 public:
  Printer() {
    EXPECT_EQ(::pipe2(pipe_.data(), O_CLOEXEC), 0);
    full_.assign(static_cast<std::size_t>(::fcntl(pipe_[1], F_GETPIPE_SZ)) - 1, 'x');
    std::fflush(stdout);  // or the copy would print it, too
    pid_ = ::fork();
    if (pid_ != 0) {
      ::close(pipe_[1]);
      return;
    }
    ::dup2(pipe_[1], STDOUT_FILENO);
    install_stop_signal();
    say(full_);
    say("more");
    ::_exit(std::ferror(stdout) == 0 ? 0 : 1);
  }
  ~Printer() { ::close(pipe_[0]); }

  // Waits until the process sleeps, which it does only where the pipe is full.
  void wait_until_full() const {
    for (std::string state; state != "S";) {
      std::ifstream in("/proc/" + std::to_string(pid_) + "/stat");
      for (int field = 0; field < 3; ++field)
        in >> state;
    }
  }
  void interrupt() const { EXPECT_EQ(::kill(pid_, SIGINT), 0); }
  std::string printed() const { return full_ + "\nmore\n"; }
  std::string all() const {
    std::string text;
    std::array<char, 1 << 16> bytes;
    for (ssize_t size = 0; (size = ::read(pipe_[0], bytes.data(), bytes.size())) > 0;)
      text.append(bytes.data(), static_cast<std::size_t>(size));
    return text;
  }
  int status() const {
    int status = -1;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    return status;
  }

 private:
  std::array<int, 2> pipe_{};
  std::string full_;
  pid_t pid_ = -1;
};

}  // namespace

TEST(StopSignal, WhatIsBeingPrintedIsPrintedWhole) {
  const Printer printer;
  printer.wait_until_full();
  printer.interrupt();
  EXPECT_TRUE(printer.all() == printer.printed());
  EXPECT_EQ(printer.status(), 0);
}

}  // namespace troupe::cli
