// Helpers that build the messages of configuration errors from parts. Pure.
#pragma once

#include "runtime/core/result.hpp"

#include <concepts>
#include <string>

namespace troupe::config {

inline void append(std::string& to, std::string_view part) {
  to += part;
}
inline void append(std::string& to, std::integral auto part) {
  to += std::to_string(part);
}

template <class... Parts>
std::string joined(const Parts&... parts) {
  std::string out;
  (append(out, parts), ...);
  return out;
}

template <class... Parts>
core::Failure refuse(const Parts&... parts) {
  return core::fail(core::ErrorCode::kConfig, joined(parts...));
}

}  // namespace troupe::config
