// Measures how often a reward model scores the better answer of a pair above the worse one: over
// all pairs, and for each set that a column names.
#pragma once

#include "apps/cli/flags.hpp"
#include "apps/cli/placement.hpp"
#include "apps/troupe/batch/prompt_flags.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::app {

struct PairFlags {
  std::string model, chosen = "chosen", rejected = "rejected";  // reward model; columns of answers

  // Appends the flags that fill this object, which must outlive their parsing.
  void add_to(std::vector<Flag>& flags);
};

// Where and in which form the results go.
struct PairReport {
  bool json = false;       // print figures as one JSON object, else as a table
  std::string out;         // .jsonl file of the pairs with their scores; empty: none
  std::string source_key;  // column that names sets of pairs
};

// Scores all pairs of `rows` and prints accuracy (equal scores count a half) and mean margin with
// 95 % bootstrap intervals. Errors: kData, with file:line, for a row that lacks the columns or
// cannot be scored; those of the reward model and of writing `out`.
core::Result<void> print_pair_accuracy(const PairFlags& pairs,
                                       const PromptFlags& rows,
                                       const Placement& placement,
                                       const PairReport& report);

}  // namespace troupe::app
