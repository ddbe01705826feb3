#include "actors/reward/worker_process.hpp"

#include "actors/reward/limits.hpp"
#include "runtime/data/limits.hpp"
#include "runtime/net/socket.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace troupe::actors::reward {
namespace {

constexpr int kReplyDescriptor = 3;

struct Pair {
  net::OwnedFd ours, child;
};

// Sockets rather than pipes: a write to a dead child is then an error, not a signal.
core::Result<Pair> make_pair(const std::string& name) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return core::fail(ErrorCode::kResources, "cannot reach a " + name + ": " + strerror(errno));
  }
  return Pair{net::OwnedFd(ends[0]), net::OwnedFd(ends[1])};
}

// The environment of a worker: the few variables that it inherits, and two that are set.
std::vector<std::string> bare_environment() {
  std::vector<std::string> kept;
  for (const char* name : {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV"}) {
    if (const char* value = std::getenv(name)) kept.push_back(std::string(name) + "=" + value);
  }
  kept.push_back("OMP_NUM_THREADS=1");
  kept.push_back("PYTHONUNBUFFERED=1");
  return kept;
}

// An async function may have a connection for each of its batches.
rlim_t files_max() {
  constexpr rlim_t kFiles = 4 * limits::kRewardWorkerBatches_max;
  rlimit given{};
  return ::getrlimit(RLIMIT_NOFILE, &given) == 0 ? std::min(given.rlim_max, kFiles) : kFiles;
}

core::TimePoint now() {
  return std::chrono::steady_clock::now();
}

// Waits until the descriptor can be read or written; false when the time is over.
bool wait_until_ready(const net::OwnedFd& fd, short events, core::TimePoint until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now()).count();
  pollfd polled{fd.get(), events, 0};
  return ::poll(&polled, 1, left > 0 ? static_cast<int>(left) : 0) != 0;
}

}  // namespace

core::Result<void> WorkerProcess::start(const std::vector<std::string>& command, Prints prints) {
  kill();
  TROUPE_TRY_ASSIGN(requests, make_pair(name_));
  TROUPE_TRY_ASSIGN(replies, make_pair(name_));
  core::ChildSpec spec;
  spec.words = command;
  spec.environment = bare_environment();
  spec.descriptors = {{requests.child.get(), 0}, {2, 1}, {replies.child.get(), kReplyDescriptor}};
  Pair printed;
  if (prints == Prints::kTaken) {
    TROUPE_TRY_SET(printed, make_pair(name_));
    spec.descriptors[1].ours = printed.child.get();
    spec.descriptors.push_back({printed.child.get(), 2});
  }
  // No limit on files: what the child prints may go into one that was long before.
  spec.limits = {{RLIMIT_CORE, 0}, {RLIMIT_NOFILE, files_max()}};
  TROUPE_TRY_SET(child_, core::ChildProcess::start("a " + name_, std::move(spec)));
  in_ = std::move(requests.ours);
  out_ = std::move(replies.ours);
  prints_ = std::move(printed.ours);
  ::fcntl(in_.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(out_.get(), F_SETFL, O_NONBLOCK);
  return {};
}

core::Result<void> WorkerProcess::send_line(const std::string& line, core::Duration deadline) {
  return send_bytes(line + "\n", deadline);
}

core::Result<void> WorkerProcess::send_bytes(std::string_view bytes, core::Duration deadline) {
  if (!running()) return core::fail(ErrorCode::kClosed, "the " + name_ + " is not running");
  const auto until = now() + deadline;
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = ::send(in_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
      continue;
    }
    if (n < 0 && !net::would_block()) return ended();
    if (!wait_until_ready(in_, POLLOUT, until)) {
      return core::fail(ErrorCode::kDeadline, "the " + name_ + " does not read its requests");
    }
  }
  return {};
}

core::Result<std::string> WorkerProcess::read_line(core::Duration deadline) {
  if (!running()) return core::fail(ErrorCode::kClosed, "the " + name_ + " is not running");
  const auto until = now() + deadline;
  for (;;) {
    if (const auto end = pending_.find('\n'); end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    if (pending_.size() > troupe::data::limits::kJsonLine_bytes_max) {
      return core::fail(ErrorCode::kData, "the " + name_ + "'s reply is longer than the bound");
    }
    TROUPE_TRY(read_some(until));
  }
}

core::Result<std::string> WorkerProcess::read_bytes(std::size_t count, core::Duration deadline) {
  if (!running()) return core::fail(ErrorCode::kClosed, "the " + name_ + " is not running");
  const auto until = now() + deadline;
  while (pending_.size() < count)
    TROUPE_TRY(read_some(until));
  std::string bytes = pending_.substr(0, count);
  pending_.erase(0, count);
  return bytes;
}

core::Result<void> WorkerProcess::read_some(core::TimePoint until) {
  for (;;) {
    char chunk[65536];
    const ssize_t n = ::read(out_.get(), chunk, sizeof chunk);
    if (n > 0) {
      pending_.append(chunk, static_cast<std::size_t>(n));
      return {};
    }
    if (n == 0 || !net::would_block()) return ended();
    if (!wait_until_ready(out_, POLLIN, until)) {
      return core::fail(ErrorCode::kDeadline, "the " + name_ + " did not answer in time");
    }
  }
}

WorkerProcess::Streams WorkerProcess::take_streams() {
  return {std::move(in_), std::move(out_), std::exchange(pending_, {}), std::move(prints_)};
}

core::Failure WorkerProcess::ended() {
  ::kill(-child_.pid(), SIGKILL);
  const int status = child_.wait();
  kill();
  const bool unstarted = WIFEXITED(status) && WEXITSTATUS(status) == 127;
  return core::fail(ErrorCode::kClosed,
                    "the " + name_ + " " +
                        (unstarted ? "could not be started (is the interpreter installed?)"
                                   : core::how_it_ended(status)));
}

void WorkerProcess::kill() noexcept {
  child_.kill();
  in_.close();
  out_.close();
  prints_.close();
  pending_.clear();
}

}  // namespace troupe::actors::reward
