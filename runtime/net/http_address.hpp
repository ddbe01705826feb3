// To whom a request is addressed: the form of its target, its Host and its Origin (RFC 9112, 3.2).
// A request that names another host, or comes from another site's page, is refused. Pure functions.
#pragma once

#include "runtime/net/http_head.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::net {

// Which hosts a server answers to.
struct HttpHosts {
  bool loopback = true;              // it listens on a loopback address, and takes no others
  std::vector<std::string> allowed;  // names besides `localhost`
};

// The host of HOST[:PORT], without the brackets of an IPv6 address; nullopt if it is malformed.
std::optional<std::string_view> host_part(std::string_view authority);

// True if the server accepts this HOST[:PORT].
bool host_allowed(std::string_view authority, const HttpHosts& hosts);

// A target taken apart: "http://host/path?query" (as a client sends it to a proxy) has an
// authority, "/path?query" has none.
struct HttpTarget {
  std::string_view authority, path, query;
};
HttpTarget target_of(std::string_view target);

// Why the server does not answer this request; nullopt if it does.
std::optional<HttpComplaint> address_complaint(
    const boost::beast::http::request<boost::beast::http::string_body>& message,
    const HttpHosts& hosts);

}  // namespace troupe::net
