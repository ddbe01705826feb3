// SHA-256 of texts and files, computed by OpenSSL. The functions are stateless and safe on any
// thread; a Sha256 is used by one thread at a time.
#pragma once

#include "runtime/core/result.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace troupe::store {

// The digest of bytes that come piece by piece.
class Sha256 {
 public:
  Sha256();
  void add(const void* data, std::size_t bytes);
  // The digest as 64 lower-case hexadecimal digits. Once, at the end.
  std::string hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

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
