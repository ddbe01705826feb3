// What a reward reads beside prompt, response and label. Rows can be long (the tests of a coding
// task), so only what a reward asks for travels. Value type and pure functions.
#pragma once

#include <string>
#include <vector>

namespace troupe::actors {

struct RewardReads {
  bool all_columns = false;          // of the dataset row
  std::vector<std::string> columns;  // without `all_columns`: these
  bool messages = false;             // the prompt as a list of messages
  bool tokens = false;               // the sampled ids

  bool cover(const RewardReads& wanted) const;
  // "all columns", "nothing" or "columns tests, level; messages; tokens".
  std::string text() const;
  friend bool operator==(const RewardReads&, const RewardReads&) = default;
};

// The row with the columns that are read; one that it lacks is left out. Both are JSON objects;
// with `all_columns` the text of the row as it is.
std::string row_with(const std::string& row, const RewardReads& reads);

}  // namespace troupe::actors
