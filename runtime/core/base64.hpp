// Base64 (RFC 4648, with padding). Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace troupe::core {

std::string base64(std::string_view bytes);

}  // namespace troupe::core
