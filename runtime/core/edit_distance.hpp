// How far one word is from another, for messages that name what the user may have meant. Pure; time
// and memory are those of the product of the lengths, so callers give it names, not texts.
#pragma once

#include <cstddef>
#include <string_view>

namespace troupe::core {

// Edits (insert, drop, replace, swap neighbours) that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace troupe::core
