// The credentials with which a gateway and its clients prove themselves: the run's join token, or a
// certificate signed by the run's CA. Also makes, writes and reads token files: 32 random bytes in
// hexadecimal, mode 0600. A value type and plain functions; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string>

namespace troupe::net {

struct GatewayAuth {
  std::string token;  // 64 hexadecimal digits; or the three files, PEM:
#define KEYS "runtime/net/auth_keys.def"
#include "runtime/config/fill.def"

  bool by_token() const noexcept { return !token.empty(); }
};

inline constexpr std::size_t kToken_bytes = 32;

// Checks that either a well-formed token or all three files are given, not both. Error kConfig says
// what is missing.
core::Result<void> check_auth(const GatewayAuth& auth);

// A new random token, by OpenSSL's generator.
core::Result<std::string> make_token();

// Writes a new token to `path`, which must not exist yet, with mode 0600; returns the token.
// Errors: kConfig (the file exists), kResources (it cannot be written).
core::Result<std::string> create_token_file(const std::filesystem::path& path);

// Reads a token file. Errors, all kConfig: no such file, not a regular file, others than the owner
// have access (the error names the chmod to run), not a token.
core::Result<std::string> read_token_file(const std::filesystem::path& path);

}  // namespace troupe::net
