// Size of a group in messages from the generator to the policy, in bytes: an upper bound of each
// message that carries it, without the dataset's columns. Configurations and finished groups are
// checked against limits::kGroup_bytes_max with it. Pure.
#pragma once

#include <cstdint>

namespace troupe::core {

// Typical text of one token; used to check a configuration.
inline constexpr std::uint64_t kTokenText_bytes = 4;

// `tokens` and `text` (bytes) are totals over all samples. A token is an id and two log-probs.
constexpr std::uint64_t group_bytes(std::uint64_t prompt_tokens,
                                    std::uint64_t samples,
                                    std::uint64_t tokens,
                                    std::uint64_t text) {
  return 512 + prompt_tokens * 4 + samples * 128 + tokens * 12 + text;
}

}  // namespace troupe::core
