// The run's join token as a file: 32 random bytes in hexadecimal, readable by its owner alone.
// Plain functions; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string>

namespace troupe::net {

// A new token from the system's random source.
core::Result<std::string> make_token();

// Writes a new token to `path`, which must not exist yet, with mode 0600; returns the token.
// Errors: kConfig (the file exists), kResources (it cannot be written).
core::Result<std::string> create_token_file(const std::filesystem::path& path);

// Errors, all kConfig: no such file, not a regular file, group or others have access (names the
// chmod), not a token.
core::Result<std::string> read_token_file(const std::filesystem::path& path);

}  // namespace troupe::net
