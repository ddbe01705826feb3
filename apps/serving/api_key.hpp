// The keys that let a client in: `Authorization: Bearer KEY`. Compared in a time that does not
// depend on where a wrong key differs. Immutable; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe::app {

class ApiKeys {
 public:
  ApiKeys() = default;  // none: everybody may come in
  explicit ApiKeys(std::vector<std::string> keys) : keys_(std::move(keys)) {}

  // From `--api-key`s, the lines of `--api-key-file` and TROUPE_API_KEY. Errors kConfig: an
  // unreadable or empty file, a key with white space.
  static core::Result<ApiKeys> gather(const std::vector<std::string>& flags,
                                      const std::string& file);

  bool any() const noexcept { return !keys_.empty(); }
  // Of the Authorization header's value.
  bool admits(std::string_view authorization) const;

 private:
  std::vector<std::string> keys_;
};

}  // namespace troupe::app
