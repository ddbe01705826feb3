#include "runtime/net/http_address.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/string.hpp>

#include <algorithm>
#include <array>
#include <iterator>

namespace troupe::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

namespace {

constexpr std::array<std::string_view, 2> kSchemes = {"http://", "https://"};

// What follows http:// or https://; nullopt without them.
std::optional<std::string_view> behind_scheme(std::string_view url) {
  for (const std::string_view scheme : kSchemes) {
    if (url.size() >= scheme.size() && beast::iequals(url.substr(0, scheme.size()), scheme))
      return url.substr(scheme.size());
  }
  return std::nullopt;
}

bool is_port(std::string_view text) {
  return text.empty() || (text[0] == ':' && std::all_of(text.begin() + 1, text.end(), [](char c) {
                            return c >= '0' && c <= '9';
                          }));
}

using Request = http::request<http::string_body>;

std::optional<HttpComplaint> target_complaint(const Request& message) {
  if (message.method() == http::verb::connect)
    return HttpComplaint{http::status::not_implemented, "this server is no proxy: no CONNECT"};
  const std::string_view target = message.target();
  const bool whole = target == "*" && message.method() == http::verb::options;
  if (target.starts_with('/') || whole || behind_scheme(target)) return std::nullopt;
  return HttpComplaint{http::status::bad_request,
                       "the target of the request is neither a path nor an http URL"};
}

}  // namespace

std::optional<std::string_view> host_part(std::string_view authority) {
  const bool bracket = authority.starts_with('[');
  const auto end = authority.find(bracket ? ']' : ':');
  if (bracket && end == authority.npos) return std::nullopt;
  const std::string_view host = bracket ? authority.substr(1, end - 1) : authority.substr(0, end);
  const std::string_view rest =
      end == authority.npos ? std::string_view() : authority.substr(end + (bracket ? 1 : 0));
  const bool plain = host.find_first_of("/?#@\\ \t") == host.npos;
  if (host.empty() || !plain || !is_port(rest)) return std::nullopt;
  return host;
}

bool host_allowed(std::string_view authority, const HttpHosts& hosts) {
  const auto host = host_part(authority);
  if (!host) return false;
  if (beast::iequals(*host, "localhost")) return true;
  boost::system::error_code code;
  const auto address = asio::ip::make_address(*host, code);
  if (!code && (address.is_loopback() || !hosts.loopback)) return true;
  return std::any_of(hosts.allowed.begin(), hosts.allowed.end(),
                     [&host](const std::string& one) { return beast::iequals(*host, one); });
}

HttpTarget target_of(std::string_view target) {
  HttpTarget out;
  if (const auto rest = behind_scheme(target)) {
    const auto end = std::min(rest->find_first_of("/?"), rest->size());
    out.authority = rest->substr(0, end);
    target = rest->substr(end);
  }
  const auto question = std::min(target.find('?'), target.size());
  out.path = target.substr(0, question);
  if (out.path.empty()) out.path = "/";
  if (question < target.size()) out.query = target.substr(question + 1);
  return out;
}

std::optional<HttpComplaint> address_complaint(const Request& message, const HttpHosts& hosts) {
  if (auto wrong = target_complaint(message)) return wrong;
  const auto [host, host_end] = message.equal_range(http::field::host);
  if (host == host_end)
    return HttpComplaint{http::status::bad_request, "the request has no Host header"};
  if (std::next(host) != host_end)
    return HttpComplaint{http::status::bad_request, "the request has two Host headers"};
  // A URL as the target says itself which host is meant (RFC 9112, 3.2.2).
  const HttpTarget target = target_of(message.target());
  const std::string_view authority =
      target.authority.empty() ? std::string_view(host->value()) : target.authority;
  if (!host_part(authority))
    return HttpComplaint{http::status::bad_request, "the Host of the request is malformed"};
  if (!host_allowed(authority, hosts)) {
    return HttpComplaint{http::status::misdirected_request,
                         "this server does not answer to that Host"};
  }
  const auto [origin, origin_end] = message.equal_range(http::field::origin);
  if (origin == origin_end) return std::nullopt;
  if (std::next(origin) != origin_end)
    return HttpComplaint{http::status::bad_request, "the request has two Origin headers"};
  const std::string_view from = origin->value();
  const auto scheme = from.find("://");
  if (scheme != from.npos && host_allowed(from.substr(scheme + 3), hosts)) return std::nullopt;
  return HttpComplaint{http::status::forbidden,
                       "this server does not answer to pages of that Origin"};
}

}  // namespace troupe::net
