// Tests whether the newest token of a response completes one of its stop strings. Only a bounded
// tail of the tokens is turned into text: one token for each byte of the longest stop string, and
// some for tokens without text of their own. Pure; called on the engine's thread for requests that
// have stop strings.
#pragma once

#include "runtime/engine/engine.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace troupe::engine {

// Tokens decoded beyond the bytes of the longest stop string: special tokens and pieces of
// characters.
inline constexpr std::size_t kStopTailSlack_tokens = 16;

bool completes_stop(const TokenText& text,
                    std::span<const std::int32_t> tokens,
                    std::span<const std::string> stop_strings);

}  // namespace troupe::engine
