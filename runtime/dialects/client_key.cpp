#include "runtime/dialects/client_key.hpp"

#include <cctype>

namespace troupe::dialects {

std::string_view bearer_key(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() < kScheme.size()) return {};
  for (std::size_t i = 0; i < kScheme.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(authorization[i])) != kScheme[i]) return {};
  }
  return authorization.substr(kScheme.size());
}

std::string_view client_key(const net::HttpHeaders& headers) {
  const std::string_view bearer = bearer_key(net::find_header(headers, "Authorization"));
  return bearer.empty() ? net::find_header(headers, "x-api-key") : bearer;
}

}  // namespace troupe::dialects
