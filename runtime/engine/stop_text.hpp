// Tests whether the newest token of a response completes one of its stop strings. Decodes only the
// last tokens: one for each byte of the longest stop string, and kStopTailSlack_tokens more. Pure;
// called on the engine's thread for requests that have stop strings.
#pragma once

#include "runtime/engine/engine.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace troupe::engine {

// Tokens decoded in addition to one per byte of the longest stop string, since special tokens and
// parts of characters may have no text of their own.
inline constexpr std::size_t kStopTailSlack_tokens = 16;

bool completes_stop(const TokenText& text,
                    std::span<const std::int32_t> tokens,
                    std::span<const std::string> stop_strings);

}  // namespace troupe::engine
