// Reads the header of a request as Beast does, and refuses what Beast lets pass: a folded line and
// odd transfer codings, with which a proxy before this server would see other requests than the
// server does. Stateless; on the server's strand.
#pragma once

#include "runtime/async/task.hpp"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <optional>
#include <string>

namespace troupe::net {

using HttpParser = boost::beast::http::request_parser<boost::beast::http::string_body>;

// Why a request is refused.
struct HttpComplaint {
  boost::beast::http::status status = boost::beast::http::status::bad_request;
  std::string why;
};

struct HttpHeadRead {
  boost::system::error_code code;
  bool folded = false;  // a line goes on in the next one (obs-fold); nothing behind it was read
};

// Reads until the header is whole, broken or folded; what follows it stays in `buffer`. All three
// outlive the call. The stream's timer and the parser's header_limit bound it.
async::task<HttpHeadRead> read_http_head(boost::beast::tcp_stream* stream,
                                         boost::beast::flat_buffer* buffer,
                                         HttpParser* parser);

// What is wrong with how the body is said to be sent: a coding other than `chunked` alone, or any
// with HTTP/1.0. Nothing when all is well.
std::optional<HttpComplaint> coding_complaint(
    const boost::beast::http::request<boost::beast::http::string_body>& message);

}  // namespace troupe::net
