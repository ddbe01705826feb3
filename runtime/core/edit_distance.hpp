// The edit distance between words, for messages that suggest what the user meant. Pure. Time is the
// product of the lengths, so use it for names, not texts.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace troupe::core {

// The number of edits (insert, delete, replace, swap neighbours) that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The entry of `words` that `word` most likely means: at most a third of the letters of `word` are
// wrong (one in a short word), or `word` has 3 letters or more and the entry begins with them.
// Empty if there is no such entry.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> words);

}  // namespace troupe::core
