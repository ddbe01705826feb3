#include "runtime/net/line_pair.hpp"

#include "runtime/net/await_token.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

#include <array>

namespace troupe::net {

namespace asio = boost::asio;
using UnixSocket = asio::local::stream_protocol::socket;

struct LinePair::Sockets {
  explicit Sockets(const async::Executor& executor) : out(executor), in(executor) {}
  UnixSocket out, in;
  std::array<char, 65536> chunk{};
};

LinePair::LinePair(async::Executor executor,
                   OwnedFd out,
                   OwnedFd in,
                   std::string read,
                   std::size_t line_max,
                   Longer longer)
    : sockets_(std::make_unique<Sockets>(executor)),
      read_(std::move(read)),
      line_max_(line_max),
      longer_(longer) {
  boost::system::error_code unusable;  // then the first read or write fails
  sockets_->out.assign(asio::local::stream_protocol(), out.release(), unusable);
  sockets_->in.assign(asio::local::stream_protocol(), in.release(), unusable);
}

LinePair::~LinePair() = default;

async::task<core::Result<std::string>> LinePair::read() {
  std::size_t looked = 0;
  for (;;) {
    const auto end = read_.find('\n', looked);
    const bool whole = end <= line_max_ || longer_ == Longer::kRefused;
    if (end != std::string::npos && whole) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      co_return line;
    }
    looked = read_.size();
    if (looked > line_max_ && longer_ == Longer::kCut) {
      std::string piece = read_.substr(0, line_max_);
      read_.erase(0, line_max_);
      co_return piece;
    }
    if (looked > line_max_) {
      co_return core::fail(ErrorCode::kData,
                           "a line is longer than " + std::to_string(line_max_) + " bytes");
    }
    const auto [failed, size] =
        co_await sockets_->in.async_read_some(asio::buffer(sockets_->chunk), kToken);
    if (failed) co_return core::fail(ErrorCode::kClosed, failed.message());
    read_.append(sockets_->chunk.data(), size);
  }
}

async::task<core::Result<void>> LinePair::write(std::string bytes) {
  const auto [failed, sent] =
      co_await asio::async_write(sockets_->out, asio::buffer(bytes), kToken);
  if (failed) co_return core::fail(ErrorCode::kClosed, failed.message());
  co_return core::Result<void>();
}

void LinePair::close() {
  boost::system::error_code ignored;
  sockets_->out.close(ignored);
  sockets_->in.close(ignored);
}

}  // namespace troupe::net
