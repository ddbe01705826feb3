#include "runtime/net/http_head.hpp"

#include "runtime/net/await_token.hpp"

#include <boost/beast/core/buffer_traits.hpp>
#include <boost/beast/core/read_size.hpp>
#include <boost/beast/http/error.hpp>

namespace troupe::net {

namespace beast = boost::beast;
namespace http = boost::beast::http;

namespace {

constexpr std::size_t kRead_bytes_max = 64u << 10;

// True if a line in `bytes` begins with a blank, so that it continues the line before (obs-fold).
// `last` is the byte that preceded `bytes`; it becomes the last byte looked at.
bool folds(std::string_view bytes, char& last) {
  for (const char byte : bytes) {
    if (last == '\n' && (byte == ' ' || byte == '\t')) return true;
    last = byte;
  }
  return false;
}

}  // namespace

async::task<HttpHeadRead> read_http_head(AnyStream* stream,
                                         beast::flat_buffer* buffer,
                                         HttpParser* parser) {
  parser->eager(false);  // stop where the body begins
  HttpHeadRead read;
  char last = 0;
  for (;;) {
    if (buffer->size() > 0) {
      const auto data = buffer->data();
      const std::size_t taken = parser->put(data, read.code);
      read.folded = folds({static_cast<const char*>(data.data()), taken}, last);
      buffer->consume(taken);
      const bool more = read.code == http::error::need_more;
      if (more) read.code = {};
      if (read.code || read.folded || parser->is_header_done()) co_return read;
      if (!more && taken > 0) continue;
    }
    const std::size_t room = beast::read_size(*buffer, kRead_bytes_max);
    if (room == 0) {
      read.code = http::error::buffer_overflow;
      co_return read;
    }
    const auto space = buffer->prepare(room);
    const auto [code, size] = co_await stream->async_read_some(space, kToken);
    read.code = code;
    if (code) co_return read;
    buffer->commit(size);
  }
}

std::optional<HttpComplaint> coding_complaint(const http::request<http::string_body>& message) {
  const auto [first, end] = message.equal_range(http::field::transfer_encoding);
  if (first == end) return std::nullopt;
  if (message.version() < 11)
    return HttpComplaint{http::status::bad_request, "Transfer-Encoding goes with HTTP/1.1"};
  if (std::next(first) != end || !beast::iequals(first->value(), "chunked")) {
    return HttpComplaint{http::status::not_implemented,
                         "Transfer-Encoding: this server takes chunked alone"};
  }
  return std::nullopt;
}

}  // namespace troupe::net
