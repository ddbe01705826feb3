// The names of a session: an id, which stands in paths, answers and traces, and a key, which opens
// it: ID.SECRET. Values; any thread.
#pragma once

#include "runtime/core/secret.hpp"

#include <string>
#include <string_view>

namespace troupe::sessions {

inline constexpr std::size_t kSessionId_bytes = 16;      // random ones
inline constexpr std::size_t kSessionSecret_bytes = 16;  // which cannot be guessed

// A text taken apart; without a dot it is an id alone.
struct SessionWords {
  std::string_view id, secret;
};
inline SessionWords session_words(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == text.npos) return {text, {}};
  return {text.substr(0, dot), text.substr(dot + 1)};
}

// What opens a session.
struct SessionLock {
  std::string secret = core::random_hex(kSessionSecret_bytes);
  bool in_path = false;  // the key may stand in the path, for clients that can send no other

  bool opens(std::string_view given) const {
    return !given.empty() && core::same_secret(given, secret);
  }
  std::string key(const std::string& id) const { return id + "." + secret; }
};

}  // namespace troupe::sessions
