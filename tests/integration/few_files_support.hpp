// Runs under a limit on open files, and a crowd that opens connections to all their ports and says
// nothing. Used on a test's main thread, but for the crowd's own.
#pragma once

#include "join_support.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>

namespace troupe::test {

// `troupe WORDS...` under `ulimit OPTIONS` ("-n 64").
inline std::vector<std::string> limited(const std::string& options,
                                        const std::vector<std::string>& words) {
  return std::vector<std::string>{"/bin/bash", "-c", "ulimit " + options + " && exec \"$0\" \"$@\"",
                                  troupe_program()} +
         words;
}

// The TCP ports of a run: of its head and the processes that this one has started.
inline std::set<std::uint16_t> ports_of_run(pid_t head) {
  std::set<std::uint16_t> ports = ports_of(head);
  for (const pid_t child : children_of(head))
    ports.merge(ports_of(child));
  return ports;
}

// Holds `each` silent connections to every port, and opens others for those that are closed.
class SilentCrowd {
 public:
  SilentCrowd(std::set<std::uint16_t> ports, std::size_t each)
      : ports_(std::move(ports)), each_(each), thread_([this] { crowd(); }) {}
  ~SilentCrowd() {
    over_ = true;
    thread_.join();
  }
  std::size_t opened() const { return opened_; }

 private:
  struct Line {
    int fd;
    std::uint16_t port;
  };
  void crowd() {
    rlimit files = {};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    std::vector<Line> lines;
    while (!over_) {
      for (const std::uint16_t port : ports_) {
        std::size_t held = 0;
        std::erase_if(lines, [&](const Line& line) {
          if (line.port != port) return false;
          char byte = 0;
          const auto got = ::recv(line.fd, &byte, 1, MSG_DONTWAIT);
          const bool gone = got == 0 || (got < 0 && errno != EAGAIN && errno != ENOTCONN);
          if (gone) ::close(line.fd);
          held += gone ? 0 : 1;
          return gone;
        });
        for (; held < each_; ++held) {
          const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
          if (fd < 0) break;
          sockaddr_in address = {};
          address.sin_family = AF_INET;
          address.sin_port = htons(port);
          address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
          static_cast<void>(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address));
          lines.push_back({fd, port});
          ++opened_;
        }
      }
      ::poll(nullptr, 0, 20);
    }
    for (const Line& line : lines)
      ::close(line.fd);
  }

  const std::set<std::uint16_t> ports_;
  const std::size_t each_;
  std::atomic<bool> over_ = false;
  std::atomic<std::size_t> opened_ = 0;
  std::thread thread_;
};

}  // namespace troupe::test
