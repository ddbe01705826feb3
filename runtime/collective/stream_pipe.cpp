#include "runtime/collective/stream_pipe.hpp"

#include "runtime/collective/limits.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

namespace troupe::collective {
namespace {

constexpr std::size_t kCall_bytes = std::size_t{1} << 20;  // of one system call

}  // namespace

// A broken connection counts as ended: what the peer has to say about it comes on the control
// connection.
std::size_t StreamPipe::send_some(const void* from, std::size_t bytes) {
  if (ended_) return 0;
  const ssize_t n = ::send(socket_.get(), from, std::min(bytes, kCall_bytes), MSG_NOSIGNAL);
  if (n < 0 && !net::would_block()) ended_ = true;
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

std::size_t StreamPipe::receive_some(void* to, std::size_t bytes) {
  if (ended_ || bytes == 0) return 0;
  const ssize_t n = ::recv(socket_.get(), to, std::min(bytes, kCall_bytes), 0);
  if (n == 0 || (n < 0 && !net::would_block())) ended_ = true;
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

std::size_t StreamPipe::write(core::Memory& memory, const void* from, std::size_t bytes) {
  if (memory.on_host()) return send_some(from, bytes);
  if (out_begin_ < out_end_ || ended_) return 0;
  out_.reserve_discard(static_cast<std::int64_t>(limits::kRankStaging_bytes));
  const std::size_t size = std::min<std::size_t>(bytes, limits::kRankStaging_bytes);
  memory.download(out_.data(), from, size);
  out_begin_ = 0;
  out_end_ = size;
  return size;
}

bool StreamPipe::flush(bool& moved) {
  if (out_begin_ == out_end_) return true;
  const std::size_t sent = send_some(out_.data() + out_begin_, out_end_ - out_begin_);
  out_begin_ += sent;
  moved = moved || sent > 0;
  return out_begin_ == out_end_;
}

std::size_t StreamPipe::read(core::Memory& memory, void* to, std::size_t bytes) {
  if (memory.on_host()) return receive_some(to, bytes);
  in_.reserve_discard(static_cast<std::int64_t>(limits::kRankStaging_bytes));
  const std::size_t size =
      receive_some(in_.data(), std::min<std::size_t>(bytes, limits::kRankStaging_bytes));
  if (size > 0) memory.upload(to, in_.data(), size);
  return size;
}

bool StreamPipe::arm(bool reads, bool writes, short& events) {
  if (reads) events = static_cast<short>(events | POLLIN);
  if (writes) events = static_cast<short>(events | POLLOUT);
  return true;
}

}  // namespace troupe::collective
