// One line of a terminal, made of parts that give way when it is narrow. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace troupe::observe {

struct LinePart {
  std::string text;  // empty: no part
  int rank = 0;      // the part with the highest rank goes first; 0 stays
  // A part with this many columns or more is worth showing, so it is cut before it goes. 0: whole
  // or not at all.
  std::size_t columns_min = 0;
  bool dim = false;
};

// The parts in their order with two blanks between them, in at most `columns` columns: from the
// highest rank on, parts are cut or left out until the rest fits. `colour`: dim parts stand between
// the escapes for dim text, which take no column. What could move the cursor is taken out.
std::string fitted_line(std::span<const LinePart> parts, std::size_t columns, bool colour);

// "[######......]": `share` of 1 is full. Two columns more than `cells`.
std::string bar_text(double share, std::size_t cells);

}  // namespace troupe::observe
