// Which columns of a dataset row somebody reads, and a row with these alone. Rows can be long (the
// tests of a coding task), so only what a reward asks for travels. Value type and pure functions.
#pragma once

#include <string>
#include <vector>

namespace troupe::actors {

struct RowColumns {
  bool all = false;
  std::vector<std::string> names;  // without `all`

  bool cover(const RowColumns& wanted) const;
  // "all", "none" or "tests, level".
  std::string text() const;
  friend bool operator==(const RowColumns&, const RowColumns&) = default;
};

// The row with these columns alone; a column that it lacks is left out. Both are JSON objects; with
// `all` the text of the row as it is.
std::string row_with(const std::string& row, const RowColumns& columns);

}  // namespace troupe::actors
