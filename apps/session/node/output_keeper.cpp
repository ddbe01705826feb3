#include "apps/session/node/output_keeper.hpp"

#include "actors/limits.hpp"
#include "apps/session/node/bounded_log.hpp"
#include "runtime/core/owned_fd.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace troupe::app {
namespace {

constexpr int kPipe_bytes = 1 << 20;
constexpr int kLook_ms = 500;

// Divides what is read into lines.
class OutputLines {
 public:
  explicit OutputLines(std::filesystem::path log) : log_(std::move(log)) {}

  void add(std::string_view bytes) {
    std::string text;
    while (!bytes.empty()) {
      const std::size_t end = std::min(bytes.find('\n'), bytes.size());
      const std::size_t room =
          actors::limits::kLogLine_bytes_max -
          std::min<std::size_t>(line_.size(), actors::limits::kLogLine_bytes_max);
      line_ += bytes.substr(0, std::min(end, room));
      if (end < bytes.size()) finish(text);
      bytes.remove_prefix(std::min(end + 1, bytes.size()));
    }
    if (!text.empty()) append_to_log(log_, text);
  }
  void end() {
    std::string text;
    if (!line_.empty()) finish(text);
    text += lines_.told_drops();
    if (!text.empty()) append_to_log(log_, text);
  }

 private:
  void finish(std::string& text) {
    const auto now = std::chrono::steady_clock::now();
    if (lines_.has_room(now)) {
      lines_.add(safe_log_line(line_), now, text);
    } else {
      lines_.drop(1);
    }
    line_.clear();
  }

  std::filesystem::path log_;
  BoundedLines lines_;
  std::string line_;  // the begin of one that has not ended
};

// Whether a living keeper has locked the file.
bool is_held(const std::filesystem::path& file) {
  const core::OwnedFd opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  return opened && ::flock(opened.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// Reads until nobody has the other end of the pipe, or the owner is gone and nothing comes.
void read_all_of(int pipe, const std::filesystem::path& log, const std::function<bool()>& owned) {
  OutputLines lines(log);
  std::vector<char> block(kPipe_bytes);
  for (;;) {
    pollfd ready{pipe, POLLIN, 0};
    const int count = ::poll(&ready, 1, kLook_ms);
    if (count == 0 && !owned()) break;
    if (count <= 0) continue;
    const ssize_t got = ::read(pipe, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    lines.add({block.data(), static_cast<std::size_t>(got)});
  }
  lines.end();
}

// `lock`: the log as it is now, which stays locked until then, under its next name, too.
[[noreturn]] void keep(int pipe, int lock, const std::filesystem::path& log, pid_t owner) {
  ::setsid();
  ::prctl(PR_SET_NAME, "troupe-log");
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
    ::signal(number, SIG_IGN);
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int standard : {0, 1, 2})
    ::dup2(nothing, standard);
  ::dup2(pipe, 3);
  ::dup2(lock, 4);
  ::close_range(5, ~0u, 0);
  read_all_of(3, log, [owner] { return ::getppid() == owner; });
  ::_exit(0);
}

}  // namespace

void keep_output_in(const std::filesystem::path& log) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  const core::OwnedFd reads(ends[0]), writes(ends[1]);
  ::fcntl(reads.get(), F_SETPIPE_SZ, kPipe_bytes);
  const core::OwnedFd lock(
      ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!lock) return;
  const pid_t owner = ::getpid();
  const pid_t keeper = ::fork();
  if (keeper < 0) return;
  if (keeper == 0) {
    const int pipe = ::fcntl(reads.get(), F_DUPFD, 10), held = ::fcntl(lock.get(), F_DUPFD, 10);
    ::flock(held, LOCK_EX | LOCK_NB);
    keep(pipe, held, std::filesystem::absolute(log), owner);
  }
  ::dup2(writes.get(), STDOUT_FILENO);
  ::dup2(writes.get(), STDERR_FILENO);
  // Somebody may kill the keeper. This process has the pipe's end, too, and reads on then, so that
  // nobody's print fails.
  const int pipe = ::fcntl(reads.get(), F_DUPFD_CLOEXEC, 3);
  std::thread([pipe, keeper, log = std::filesystem::absolute(log)] {
    while (::waitpid(keeper, nullptr, 0) < 0 && errno == EINTR)
      continue;
    read_all_of(pipe, log, [] { return true; });
  }).detach();
}

bool keeper_writes(const std::filesystem::path& log) {
  return is_held(log) || is_held(log.string() + ".1");
}

}  // namespace troupe::app
