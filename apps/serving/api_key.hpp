// The API keys that admit a client (`Authorization: Bearer KEY`), compared in constant time.
// Immutable; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe::app {

class ApiKeys {
 public:
  ApiKeys() = default;  // no keys: every client is admitted
  explicit ApiKeys(std::vector<std::string> keys) : keys_(std::move(keys)) {}

  // From `--api-key`s, the lines of `--api-key-file` and TROUPE_API_KEY. Errors kConfig: an
  // unreadable or empty file, a key with white space.
  static core::Result<ApiKeys> gather(const std::vector<std::string>& flags,
                                      const std::string& file);

  bool any() const noexcept { return !keys_.empty(); }
  // Whether this value of the Authorization header holds one of the keys.
  bool admits(std::string_view authorization) const;

 private:
  std::vector<std::string> keys_;
};

}  // namespace troupe::app
