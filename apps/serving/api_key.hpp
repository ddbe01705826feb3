// The API keys of a server: checks a client's `Authorization: Bearer KEY` against them, in constant
// time. Immutable; any thread.
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

  // Collects the keys of the `--api-key` flags, of the lines of `--api-key-file` (`file`, may be
  // empty) and of the environment variable TROUPE_API_KEY. Error kConfig: a file that cannot be
  // read or has no key, or a key that is empty or has white space.
  static core::Result<ApiKeys> gather(const std::vector<std::string>& flags,
                                      const std::string& file);

  bool any() const noexcept { return !keys_.empty(); }
  // True if this value of the Authorization header holds one of the keys, or if there are no keys.
  bool admits(std::string_view authorization) const;
  // The same for the bare key.
  bool has(std::string_view key) const;

 private:
  std::vector<std::string> keys_;
};

}  // namespace troupe::app
