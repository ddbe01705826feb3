// The key that a client sends with a request. Pure functions; any thread.
#pragma once

#include "runtime/net/http.hpp"

#include <string_view>

namespace troupe::dialects {

// The key in a value of the Authorization header, "Bearer KEY"; empty if there is none.
std::string_view bearer_key(std::string_view authorization);

// The bearer key of a request, or that of Anthropic's header x-api-key; empty if it has neither.
std::string_view client_key(const net::HttpHeaders& headers);

}  // namespace troupe::dialects
