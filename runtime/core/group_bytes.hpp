// What a group takes on its way from the generator to the policy, in bytes: an upper bound of each
// message that carries it, without the dataset's columns. A configuration and a finished group are
// held to limits::kGroup_bytes_max by it. Pure.
#pragma once

#include <cstdint>

namespace troupe::core {

// Text of one token, as a rule: what a configuration is judged by.
inline constexpr std::uint64_t kTokenText_bytes = 4;

// `tokens` and `text` of all samples together. A token is an id and two log-probs.
constexpr std::uint64_t group_bytes(std::uint64_t prompt_tokens,
                                    std::uint64_t samples,
                                    std::uint64_t tokens,
                                    std::uint64_t text) {
  return 512 + prompt_tokens * 4 + samples * 128 + tokens * 12 + text;
}

}  // namespace troupe::core
