#include "runtime/net/url.hpp"

#include "runtime/core/texts.hpp"

#include <string_view>

namespace troupe::net {
namespace {

constexpr std::size_t kUrl_bytes_max = 2048;

core::Failure bad(const std::string& text, const std::string& why, std::string_view advice = {}) {
  return core::fail(core::ErrorCode::kConfig, "the URL '" + text.substr(0, 200) + "' " + why,
                    advice);
}

// True when the text has only letters, digits and the characters of `also`.
bool plain(std::string_view text, const std::string& also) {
  return text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyz"
             "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" +
             also) == text.npos;
}

}  // namespace

core::Result<Url> parse_url(const std::string& text) {
  Url url;
  std::string_view rest = text;
  if (text.size() > kUrl_bytes_max) return bad(text, "is too long");
  for (const char c : text) {
    if (c <= ' ' || c == 0x7f) return bad(text, "holds a blank or a control character");
  }
  if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
    url.tls = true;
  } else {
    return bad(text, "begins with neither http:// nor https://");
  }
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  rest.remove_prefix(authority.size());
  if (authority.find('@') != authority.npos)
    return bad("...", "holds a user name or password, which would end up in logs", "leave it out");
  if (rest.find('#') != rest.npos) return bad(text, "has a #fragment, which is never sent");
  std::string_view host = authority, port;
  if (authority.starts_with('[')) {
    const auto end = authority.find(']');
    if (end == authority.npos) return bad(text, "has no ] after its address");
    host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
    if (!port.empty() && port[0] != ':') return bad(text, "has something odd after ]");
    if (!plain(host, ":.")) return bad(text, "has a malformed address");
  } else if (const auto colon = authority.find(':'); colon != authority.npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  if (host.empty()) return bad(text, "names no host");
  if (!authority.starts_with('[') && !plain(host, "-._")) return bad(text, "has a malformed host");
  url.port = url.tls ? 443 : 80;
  if (port.size() == 1) return bad(text, "has no number after its colon");
  if (!port.empty()) {
    url.port = core::number_of<std::uint16_t>(std::string_view(port).substr(1)).value_or(0);
    if (url.port == 0) return bad(text, "has a port that is not a number from 1 to 65535");
  }
  url.host = host;
  url.host_header = authority;
  if (!rest.starts_with('/')) url.target = '/';
  url.target += rest;
  return url;
}

}  // namespace troupe::net
