// Which hosts a server answers to, and the look-up of headers. Pure functions.
#include "runtime/net/http_server.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/string.hpp>

#include <algorithm>

namespace troupe::net {

namespace asio = boost::asio;
namespace beast = boost::beast;

namespace {

std::string_view host_part(std::string_view authority) {
  if (authority.starts_with('[')) {
    const auto end = authority.find(']');
    return end == authority.npos ? std::string_view() : authority.substr(1, end - 1);
  }
  return authority.substr(0, authority.find(':'));
}

}  // namespace

std::string_view find_header(const HttpHeaders& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (beast::iequals(key, name)) return value;
  }
  return {};
}

bool host_allowed(std::string_view header,
                  bool bound_to_loopback,
                  const std::vector<std::string>& allowed) {
  const std::string_view host = host_part(header);
  if (host.empty()) return false;
  if (beast::iequals(host, "localhost")) return true;
  boost::system::error_code code;
  const auto address = asio::ip::make_address(host, code);
  if (!code && (address.is_loopback() || !bound_to_loopback)) return true;
  return std::any_of(allowed.begin(), allowed.end(),
                     [host](const std::string& one) { return beast::iequals(host, one); });
}

}  // namespace troupe::net
