// Reads the header of a request with Beast's parser, and detects what Beast accepts but a proxy in
// front of the server may parse differently (request smuggling): folded lines and unusual transfer
// codings. Stateless; on the server's strand.
#pragma once

#include "runtime/async/task.hpp"
#include "runtime/net/any_stream.hpp"

#include <boost/beast/core/flat_buffer.hpp>
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
  bool folded = false;  // a line continues on the next one (obs-fold); reading stopped there
};

// Reads until the header is complete, malformed or folded; bytes after it stay in `buffer`. The
// arguments must outlive the call. The stream's timer and the parser's header_limit bound it.
async::task<HttpHeadRead> read_http_head(AnyStream* stream,
                                         boost::beast::flat_buffer* buffer,
                                         HttpParser* parser);

// The complaint about a Transfer-Encoding other than a single `chunked`, or any with HTTP/1.0;
// nullopt if there is nothing to complain about.
std::optional<HttpComplaint> coding_complaint(
    const boost::beast::http::request<boost::beast::http::string_body>& message);

}  // namespace troupe::net
