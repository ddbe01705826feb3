// The URLs that the HTTP client accepts: http:// or https://, host, port, path and query. A value
// type.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>

namespace troupe::net {

struct Url {
  bool tls = false;
  std::string host;  // without brackets
  std::uint16_t port = 0;
  std::string target;       // path and query, at least "/"
  std::string host_header;  // as it goes into the request
};

// Errors (kConfig) say what is wrong with which URL. User names, passwords and fragments are
// refused: the first two end up in logs, the last one is never sent.
core::Result<Url> parse_url(const std::string& text);

}  // namespace troupe::net
