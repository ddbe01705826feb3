#include "apps/session/node/output_keeper.hpp"

#include "actors/node/limits.hpp"
#include "apps/session/node/bounded_log.hpp"
#include "runtime/core/owned_fd.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>
#include <vector>

namespace troupe::session {
namespace {

constexpr int kPipe_bytes = 1 << 20;
constexpr int kLook_ms = 500;
constexpr const char* kName = "troupe-log";

// Divides what is read into lines.
class OutputLines {
 public:
  explicit OutputLines(std::filesystem::path log) : log_(std::move(log)) {}

  void add(std::string_view bytes) {
    std::string text;
    while (!bytes.empty()) {
      const std::size_t end = std::min(bytes.find('\n'), bytes.size());
      const std::size_t room =
          actors::node::limits::kLogLine_bytes_max -
          std::min<std::size_t>(line_.size(), actors::node::limits::kLogLine_bytes_max);
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

// Whether the process at the other end of a pair of sockets is gone. Nobody writes to it.
bool is_gone(int pair, int wait_ms) {
  pollfd ready{pair, POLLIN, 0};
  return ::poll(&ready, 1, wait_ms) > 0;
}

// Gives this process a name of its own, also in place of its arguments, which are its owner's.
void take_name() {
  ::prctl(PR_SET_NAME, kName);
  std::string fields;
  std::getline(std::ifstream("/proc/self/stat"), fields);
  std::istringstream numbers(fields.erase(0, fields.rfind(')') + 1));
  constexpr int kBegin = 48, kFirst = 3;  // of the arguments and of what follows ')', in proc(5)
  std::string skipped;
  for (int place = kFirst; place < kBegin; ++place)
    numbers >> skipped;
  std::uintptr_t begin = 0, end = 0;
  if (!(numbers >> begin >> end) || end - begin <= std::strlen(kName)) return;
  char* const words = reinterpret_cast<char*>(begin);
  std::memset(words, 0, end - begin);
  std::strcpy(words, kName);
}

// `lock`: the log as it is now, which stays locked until then, under its next name, too. `owner`:
// the end of a pair that closes with the owner.
[[noreturn]] void keep(int pipe, int lock, int owner, const std::filesystem::path& log) {
  ::setsid();
  take_name();
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
    ::signal(number, SIG_IGN);
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int standard : {0, 1, 2})
    ::dup2(nothing, standard);
  ::dup2(pipe, 3);
  ::dup2(lock, 4);
  ::dup2(owner, 5);
  ::close_range(6, ~0u, 0);
  read_all_of(3, log, [] { return !is_gone(5, 0); });
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
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return;
  core::OwnedFd ours(pair[0]), theirs(pair[1]);
  // Like fork, but the new process is a child of this one's parent.
  const auto keeper = ::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, 0);
  if (keeper < 0) return;
  if (keeper == 0) {
    const int pipe = ::fcntl(reads.get(), F_DUPFD, 10), held = ::fcntl(lock.get(), F_DUPFD, 10);
    const int owner = ::fcntl(theirs.get(), F_DUPFD, 10);
    ::flock(held, LOCK_EX | LOCK_NB);
    keep(pipe, held, owner, std::filesystem::absolute(log));
  }
  theirs.close();
  ::dup2(writes.get(), STDOUT_FILENO);
  ::dup2(writes.get(), STDERR_FILENO);
  // Somebody may kill the keeper. This process has the pipe's end, too, and reads on then, so that
  // nobody's print fails.
  const int pipe = ::fcntl(reads.get(), F_DUPFD_CLOEXEC, 3);
  std::thread([pipe, keeper = ours.release(), log = std::filesystem::absolute(log)] {
    while (!is_gone(keeper, -1))
      continue;
    read_all_of(pipe, log, [] { return true; });
  }).detach();
}

std::size_t reap_keepers() {
  for (std::size_t count = 0;; ++count) {
    siginfo_t dead = {};  // the first child that has ended; it is left unreaped
    if (::waitid(P_ALL, 0, &dead, WEXITED | WNOHANG | WNOWAIT) != 0 || dead.si_pid == 0)
      return count;
    std::string name;
    std::ifstream("/proc/" + std::to_string(dead.si_pid) + "/comm") >> name;
    if (name != kName || ::waitpid(dead.si_pid, nullptr, WNOHANG) <= 0) return count;
  }
}

bool keeper_writes(const std::filesystem::path& log) {
  return is_held(log) || is_held(log.string() + ".1");
}

}  // namespace troupe::session
