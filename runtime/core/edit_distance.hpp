// How far one word is from another, for messages that name what the user may have meant. Pure; time
// and memory are those of the product of the lengths, so callers give it names, not texts.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace troupe::core {

// Edits (insert, drop, replace, swap neighbours) that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The one of `words` that `word` most likely means: at most a third of its letters are wrong (one
// in a short word), or it is the start of that one. Empty when none is near.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> words);

}  // namespace troupe::core
