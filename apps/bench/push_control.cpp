#include "apps/bench/push_control.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>

namespace troupe::app {

using core::ErrorCode;

namespace {

core::Result<std::pair<int, int>> line_sockets() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return core::fail(ErrorCode::kResources, std::string("a pair of sockets: ") + strerror(errno));
  }
  return std::pair(ends[0], ends[1]);
}

}  // namespace

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
  TROUPE_TRY_ASSIGN(sockets, line_sockets());
  return std::pair(LineChannel(sockets.first), LineChannel(sockets.second));
}

core::Result<PushProcess> PushProcess::start(std::vector<std::string> arguments) {
  TROUPE_TRY_ASSIGN(sockets, line_sockets());
  LineChannel mine(sockets.first);
  core::ChildSpec spec;
  spec.words = std::move(arguments);
  spec.words.insert(spec.words.begin(), "troupe");
  spec.this_program = true;
  spec.descriptors = {{sockets.second, 3}};
  auto child = core::ChildProcess::start("a second process", std::move(spec));
  ::close(sockets.second);
  if (!child) return child.failure();
  return PushProcess(std::move(*child), std::move(mine));
}

}  // namespace troupe::app
