// Parses the URLs that the HTTP client accepts: http:// or https://, host, port, path and query. A
// value type and a pure function.
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
  std::string host_header;  // host and port as given, for the Host header
};

// Errors (kConfig) name the URL and say what is wrong with it. Refuses user names and passwords,
// which would end up in logs, and fragments, which are never sent.
core::Result<Url> parse_url(const std::string& text);

}  // namespace troupe::net
