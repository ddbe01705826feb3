// SHA-256 of texts and files, computed by OpenSSL. Stateless; safe on any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace troupe::store {

// The digest as 64 lower-case hexadecimal digits.
std::string sha256_text(std::string_view bytes);

struct FileDigest {
  std::uint64_t bytes = 0;
  std::string sha256;
};

// Error kInterrupted once `stop` (may be null) is true.
core::Result<FileDigest> sha256_file(const std::filesystem::path& file,
                                     const std::atomic<bool>* stop = nullptr);

}  // namespace troupe::store
