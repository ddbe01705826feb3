// The conversation between `troupe bench push` and its receiver: lines of words over a pair of sockets,
// the receiver being a second process of this program (or a thread, for the channel of one process).
// Each end is used by one thread. Bounds: kPushLine_chars a line, kPushWait for an answer; the process
// dies with its parent.
#pragma once

#include "runtime/core/child_process.hpp"
#include "runtime/core/result.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace troupe::app {

inline constexpr std::size_t kPushLine_chars = 1024;
inline constexpr std::chrono::seconds kPushWait{600};

class LineChannel {
 public:
  explicit LineChannel(int fd) : fd_(fd) {}
  LineChannel(LineChannel&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), rest_(std::move(other.rest_)) {}
  LineChannel& operator=(LineChannel&&) = delete;
  ~LineChannel();

  core::Result<void> say(const std::string& line);
  // The words of the next line. Errors: kPeerLost, kDeadline; an "error ..." line is its text.
  core::Result<std::vector<std::string>> hear();
  bool waiting() const;  // a line, or the end, can be heard at once

 private:
  int fd_;
  std::string rest_;
};

core::Result<std::pair<LineChannel, LineChannel>> make_line_channel();

// This program again, with `arguments`, until the object goes; the other end of the channel is its descriptor 3.
class PushProcess {
 public:
  static core::Result<PushProcess> start(std::vector<std::string> arguments);

 private:
  PushProcess(core::ChildProcess child, LineChannel mine)
      : child_(std::move(child)), channel(std::move(mine)) {}
  core::ChildProcess child_;

 public:
  LineChannel channel;
};

}  // namespace troupe::app
