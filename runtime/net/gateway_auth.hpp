// The credentials of the two ends of a gateway: the run's join token, or a certificate signed by
// the run's CA. There is no third kind, so a gateway is never open to everybody. Also the file of a
// join token: 32 random bytes in hexadecimal, readable by its owner alone. A value type and plain
// functions; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string>

namespace troupe::net {

struct GatewayAuth {
  std::string token;                           // 64 hexadecimal digits; or the three files below
  std::filesystem::path ca, certificate, key;  // PEM

  bool by_token() const noexcept { return !token.empty(); }
};

inline constexpr std::size_t kToken_bytes = 32;

// Checks that exactly one of the two is given and well-formed. Error kConfig says what is missing.
core::Result<void> check_auth(const GatewayAuth& auth);

// A new token from the system's random source.
core::Result<std::string> make_token();

// Writes a new token to `path`, which must not exist yet, with mode 0600; returns the token.
// Errors: kConfig (the file exists), kResources (it cannot be written).
core::Result<std::string> create_token_file(const std::filesystem::path& path);

// Errors, all kConfig: no such file, not a regular file, group or others have access (the error
// names the chmod to run), not a token.
core::Result<std::string> read_token_file(const std::filesystem::path& path);

}  // namespace troupe::net
