// Lines over a socket pair; fork and exec of /proc/self/exe.
#include "apps/bench/push_control.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>

namespace troupe::app {

using core::ErrorCode;

LineChannel::~LineChannel() {
  if (fd_ >= 0) ::close(fd_);
}

core::Result<void> LineChannel::say(const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::send(fd_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return core::fail(ErrorCode::kPeerLost, "the other side of the benchmark is gone");
    done += static_cast<std::size_t>(n);
  }
  return {};
}

bool LineChannel::waiting() const {
  if (rest_.find('\n') != std::string::npos) return true;
  pollfd entry{fd_, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

core::Result<std::vector<std::string>> LineChannel::hear() {
  std::size_t end;
  while ((end = rest_.find('\n')) == std::string::npos) {
    pollfd entry{fd_, POLLIN, 0};
    const auto most = std::chrono::milliseconds(kPushWait).count();
    if (::poll(&entry, 1, static_cast<int>(most)) == 0) {
      return core::fail(ErrorCode::kDeadline, "the other side of the benchmark is silent");
    }
    char piece[256];
    const ssize_t n = ::recv(fd_, piece, sizeof piece, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || rest_.size() > kPushLine_chars) {
      return core::fail(ErrorCode::kPeerLost, "the other side of the benchmark is gone");
    }
    rest_.append(piece, static_cast<std::size_t>(n));
  }
  std::istringstream line(rest_.substr(0, end));
  rest_.erase(0, end + 1);
  std::vector<std::string> words;
  for (std::string word; line >> word;)
    words.push_back(word);
  if (!words.empty() && words[0] == "error") {
    return core::fail(ErrorCode::kPeerLost, "the receiver of the benchmark: " + line.str());
  }
  return words;
}

core::Result<std::pair<LineChannel, LineChannel>> make_line_channel() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return core::fail(ErrorCode::kResources, std::string("a pair of sockets: ") + strerror(errno));
  }
  return std::pair(LineChannel(ends[0]), LineChannel(ends[1]));
}

core::Result<PushProcess> PushProcess::start(std::vector<std::string> arguments) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return core::fail(ErrorCode::kResources, std::string("a pair of sockets: ") + strerror(errno));
  }
  arguments.insert(arguments.begin(), "troupe");
  std::vector<char*> argv;
  for (std::string& word : arguments)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {  // only async-signal-safe calls from here to exec
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const bool placed = ends[1] == 3 ? ::fcntl(3, F_SETFD, 0) == 0 : ::dup2(ends[1], 3) == 3;
    if (::getppid() == parent && placed) ::execve("/proc/self/exe", argv.data(), environ);
    ::_exit(127);
  }
  ::close(ends[1]);
  LineChannel mine(ends[0]);
  if (child < 0) {
    return core::fail(ErrorCode::kResources, std::string("a second process: ") + strerror(errno));
  }
  return PushProcess(child, std::move(mine));
}

PushProcess::~PushProcess() {
  if (child_ <= 0) return;
  ::kill(child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace troupe::app
