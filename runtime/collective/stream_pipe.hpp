// A pipe over a stream connection of its own: TCP, or a Unix socket that leads into a tunnel. Host
// memory is sent and received in place; a device's goes through staging. Bound:
// kRankStaging_bytes for each direction, once a device's memory is used.
#pragma once

#include "runtime/collective/pipe.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/net/socket.hpp"

namespace troupe::collective {

class StreamPipe final : public Pipe {
 public:
  explicit StreamPipe(net::OwnedFd socket) : socket_(std::move(socket)) {}

  std::size_t write(core::Memory& memory, const void* from, std::size_t bytes) override;
  std::size_t read(core::Memory& memory, void* to, std::size_t bytes) override;
  bool flush(bool& moved) override;
  bool ready(bool, bool) const override { return false; }
  bool arm(bool reads, bool writes, short& events) override;
  void disarm() override {}
  int fd() const override { return ended_ ? -1 : socket_.get(); }
  bool ended() const override { return ended_; }

 private:
  std::size_t send_some(const void* from, std::size_t bytes);
  std::size_t receive_some(void* to, std::size_t bytes);

  net::OwnedFd socket_;
  bool ended_ = false;
  core::Buffer<char> out_, in_;              // staging
  std::size_t out_begin_ = 0, out_end_ = 0;  // what `write` took and was not sent yet
};

}  // namespace troupe::collective
