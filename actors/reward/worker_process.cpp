#include "actors/reward/worker_process.hpp"

#include "runtime/data/limits.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace troupe::actors {
namespace {

using core::ErrorCode;
constexpr int kReplyDescriptor = 3;

struct Pair {
  int ours = -1, child = -1;
};

// Sockets rather than pipes: a write to a dead child is then an error, not a signal.
core::Result<Pair> make_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return core::fail(ErrorCode::kResources,
                      std::string("cannot reach a reward worker: ") + strerror(errno));
  }
  return Pair{ends[0], ends[1]};
}

// What a worker may know of our environment.
std::vector<std::string> bare_environment() {
  std::vector<std::string> kept;
  for (const char* name : {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV"}) {
    if (const char* value = std::getenv(name)) kept.push_back(std::string(name) + "=" + value);
  }
  kept.push_back("OMP_NUM_THREADS=1");
  kept.push_back("PYTHONUNBUFFERED=1");
  return kept;
}

int remaining_ms(core::TimePoint until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      until - core::TimePoint(std::chrono::steady_clock::now()));
  return left.count() > 0 ? static_cast<int>(left.count()) : 0;
}

}  // namespace

core::Result<void> WorkerProcess::start(const std::vector<std::string>& command) {
  kill();
  TROUPE_TRY_ASSIGN(requests, make_pair());
  auto replies = make_pair();
  if (!replies) {
    ::close(requests.child);
    ::close(requests.ours);
    return replies.failure();
  }
  core::ChildSpec spec;
  spec.words = command;
  spec.environment = bare_environment();
  // What it prints goes to standard error.
  spec.descriptors = {{requests.child, 0}, {2, 1}, {replies->child, kReplyDescriptor}};
  spec.limits = {{RLIMIT_CORE, 0}, {RLIMIT_NOFILE, 256}, {RLIMIT_FSIZE, rlim_t{1} << 30}};
  auto child = core::ChildProcess::start("a reward worker", std::move(spec));
  ::close(requests.child);
  ::close(replies->child);
  in_ = requests.ours;
  out_ = replies->ours;
  if (!child) {
    kill();
    return child.failure();
  }
  child_ = std::move(*child);
  ::fcntl(in_, F_SETFL, O_NONBLOCK);
  ::fcntl(out_, F_SETFL, O_NONBLOCK);
  return {};
}

core::Result<void> WorkerProcess::send_line(const std::string& line, core::Duration deadline) {
  if (!running()) return core::fail(ErrorCode::kClosed, "the reward worker is not running");
  const std::string bytes = line + "\n";
  const auto until = core::TimePoint(std::chrono::steady_clock::now()) + deadline;
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = ::send(in_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
      continue;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR) return ended();
    pollfd poll_in{in_, POLLOUT, 0};
    if (::poll(&poll_in, 1, remaining_ms(until)) == 0) {
      return core::fail(ErrorCode::kDeadline, "the reward worker does not read its requests");
    }
  }
  return {};
}

core::Result<std::string> WorkerProcess::read_line(core::Duration deadline) {
  if (!running()) return core::fail(ErrorCode::kClosed, "the reward worker is not running");
  const auto until = core::TimePoint(std::chrono::steady_clock::now()) + deadline;
  for (;;) {
    if (const auto end = pending_.find('\n'); end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    if (pending_.size() > data::limits::kJsonLine_bytes_max) {
      return core::fail(ErrorCode::kData, "the reward worker's reply is longer than the bound");
    }
    char chunk[65536];
    const ssize_t n = ::read(out_, chunk, sizeof chunk);
    if (n > 0) {
      pending_.append(chunk, static_cast<std::size_t>(n));
      continue;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) return ended();
    pollfd poll_out{out_, POLLIN, 0};
    if (::poll(&poll_out, 1, remaining_ms(until)) == 0) {
      return core::fail(ErrorCode::kDeadline, "the reward worker did not answer in time");
    }
  }
}

core::Failure WorkerProcess::ended() {
  ::kill(-child_.pid(), SIGKILL);
  const int status = child_.wait();
  kill();
  const bool unstarted = WIFEXITED(status) && WEXITSTATUS(status) == 127;
  return core::fail(ErrorCode::kClosed,
                    "the reward worker " +
                        (unstarted ? "could not be started (is the interpreter installed?)"
                                   : core::how_it_ended(status)));
}

void WorkerProcess::kill() noexcept {
  child_.kill();
  if (in_ >= 0) ::close(in_);
  if (out_ >= 0) ::close(out_);
  in_ = out_ = -1;
  pending_.clear();
}

}  // namespace troupe::actors
