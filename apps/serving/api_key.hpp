// The API keys of a server, with what each may use. Compared in constant time. Immutable; any
// thread. Bound: kServeKeys_max.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::serving {

// 0: no limit.
struct KeyLimits {
  std::int64_t requests = 0;  // at a time
  std::int64_t requests_per_minute = 0;
  std::int64_t tokens_per_minute = 0;  // of prompts and responses
};

struct ApiKey {
  std::string secret;
  std::string name;  // in errors and metrics, which never show the secret
  KeyLimits limits;
  bool control = true;  // may pause the server and have it sleep
};

class ApiKeys {
 public:
  ApiKeys() = default;  // no keys: every client is admitted
  explicit ApiKeys(std::vector<ApiKey> keys) : keys_(std::move(keys)) {}

  // Collects the keys of the `--api-key` flags, of the lines of `--api-key-file` (`file`, may be
  // empty) and of the environment variable TROUPE_API_KEY. A line is
  // `KEY [name=NAME] [requests=N] [requests_per_minute=N] [tokens_per_minute=N] [control]`, or a
  // comment behind `# `. Keys without a name are key-1, key-2 and so on, by their place. In a file
  // that says more of any key than the key itself, those with the word `control` may control the
  // server; else every key may, as those of flags and variable. Error kConfig: a
  // file that cannot be read or has no key, a line in another form (its number is told, the key is
  // not), a key or a name that is there twice, a key that is empty or has white space.
  static core::Result<ApiKeys> gather(const std::vector<std::string>& flags,
                                      const std::string& file);

  bool any() const noexcept { return !keys_.empty(); }
  const std::vector<ApiKey>& list() const noexcept { return keys_; }
  // The place of this secret in the list, if it is there.
  std::optional<std::size_t> find(std::string_view secret) const;

 private:
  std::vector<ApiKey> keys_;
};

}  // namespace troupe::serving
