// An upper bound, in bytes, for each message that carries a group on its way from the generator to
// the policy, the dataset's columns aside. Configurations and finished groups are refused if it is
// above limits::kGroup_bytes_max. Pure.
#pragma once

#include <cstdint>

namespace troupe::core {

// Typical text of one token; used to check a configuration.
inline constexpr std::uint64_t kTokenText_bytes = 4;

// `tokens` and `text` (bytes) are totals over all samples. Each token has an id and so many
// log-probs: two, or three with a teacher.
constexpr std::uint64_t group_bytes(std::uint64_t prompt_tokens,
                                    std::uint64_t samples,
                                    std::uint64_t tokens,
                                    std::uint64_t text,
                                    std::uint64_t logprobs = 2) {
  return 512 + prompt_tokens * 4 + samples * 128 + tokens * 4 * (1 + logprobs) + text;
}

}  // namespace troupe::core
