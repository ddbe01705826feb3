// The child reports to the parent through a pipe whether its work runs: one byte, '+' or a letter
// for the error's code, then a message. It closes the pipe after that, at the latest when it ends.
#include "apps/troupe/background.hpp"

#include "apps/cli/stop_signal.hpp"
#include "apps/session/node/output_keeper.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/core/owned_fd.hpp"
#include "runtime/core/thrown.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

namespace troupe::app {
namespace {

constexpr char kRunning = '+';
constexpr char kFirstCode = 'A';  // the byte of a failure: this plus its error code

core::Failure no_room(const std::string& what) {
  return fail(ErrorCode::kResources, what + ": " + std::strerror(errno));
}

void tell(int pipe, char kind, const std::string& words) {
  const std::string all = kind + words;
  for (std::size_t sent = 0; sent < all.size();) {
    const ssize_t wrote = ::write(pipe, all.data() + sent, all.size() - sent);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;  // the parent has exited: nothing reads this
    sent += static_cast<std::size_t>(wrote);
  }
}

Result<void> in_words(const std::function<Result<void>(const SayRunning&)>& work,
                      const SayRunning& running) {
  try {
    return work(running);
  } catch (const std::exception& thrown) {
    return fail(core::error_of(thrown, "unexpected failure"));
  }
}

[[noreturn]] void become(int pipe,
                         const std::filesystem::path& log,
                         const std::function<Result<void>(const SayRunning&)>& work) {
  ::setsid();
  ::signal(SIGHUP, SIG_IGN);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  session::keep_output_in(log);
  bool told = false;
  const auto running = [&](const std::string& words) {
    if (std::exchange(told, true)) return;
    tell(pipe, kRunning, words);
    ::close(pipe);
  };
  const Result<void> ended = in_words(work, running);
  if (!ended) {
    std::fputs(cli::error_text(ended.error()).c_str(), stderr);
    if (!told) {
      tell(pipe, static_cast<char>(kFirstCode + static_cast<int>(ended.error().code)),
           ended.error().message);
    }
  }
  std::fflush(nullptr);
  ::_exit(ended ? 0 : core::exit_status(ended.error().code));
}

// Reads the child's report, until the child closes the pipe. Error kInterrupted: a signal came
// first.
Result<std::string> listen(int pipe) {
  std::string told;
  char block[4096];
  for (;;) {
    const ssize_t got = ::read(pipe, block, sizeof block);
    if (got == 0) return told;
    if (got > 0) told.append(block, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) return no_room("cannot hear of the background process");
    if (cli::stop_requested()) return fail(ErrorCode::kInterrupted, "interrupted");
  }
}

}  // namespace

Result<BackgroundStart> start_in_background(
    const std::filesystem::path& log, const std::function<Result<void>(const SayRunning&)>& work) {
  const core::OwnedFd file(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file) return no_room("--log: cannot write to " + log.string());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return no_room("no pipe for the background process");
  core::OwnedFd hears(ends[0]), tells(ends[1]);
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) return no_room("no background process");
  if (pid == 0) {
    hears.close();
    ::dup2(file.get(), STDOUT_FILENO);
    ::dup2(file.get(), STDERR_FILENO);
    become(tells.get(), log, work);
  }
  tells.close();
  auto told = listen(hears.get());
  if (!told) {
    ::kill(pid, SIGTERM);
    return told.failure();
  }
  if (told->empty()) {
    return fail(ErrorCode::kInternal, "the background process ended without any output",
                "its log is " + log.string());
  }
  if (told->front() == kRunning) return BackgroundStart{pid, told->substr(1)};
  ::waitpid(pid, nullptr, 0);
  return fail(static_cast<ErrorCode>(told->front() - kFirstCode), told->substr(1));
}

}  // namespace troupe::app
