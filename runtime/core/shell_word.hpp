// A word of a command that is printed for people to copy. Pure.
#pragma once

#include <string>
#include <string_view>

namespace troupe::core {

// As a POSIX shell reads it back: plain words as they are, others in single quotes.
std::string shell_word(std::string_view word);

}  // namespace troupe::core
