// Makes text from a model, a file or a peer safe for a terminal: removes whatever could move the
// cursor, change colours, set the title or reorder the line. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace troupe::observe {

// Keeps newlines and tabs; removes other control characters (C0, DEL, C1), bidirectional controls
// and Unicode line separators. Bytes that are not UTF-8 become U+FFFD.
std::string terminal_safe(std::string_view text);

// As one line: newlines and tabs become spaces, and only the first `columns` code points
// stay.
std::string terminal_line(std::string_view text, std::size_t columns);

}  // namespace troupe::observe
