// Measures how often a reward model, a judge or another reward scores the better answer of a pair
// above the worse one: over all pairs, and for each set that a column names.
#pragma once

#include "apps/cli/flags.hpp"
#include "apps/cli/placement.hpp"
#include "apps/session/reward_flags.hpp"
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

// Scores all pairs of `rows`, with the reward model of `pairs` or else with `reward`, and prints
// accuracy (equal scores count a half) and mean margin with 95 % bootstrap intervals. Both answers
// are one group. Pairs without a score are counted and left out. Errors: kData, with file:line, for
// a row that lacks the columns; when no pair has scores, or one has none from a reward model; those
// of the reward and of writing `out`.
core::Result<void> print_pair_accuracy(const PairFlags& pairs,
                                       const RewardFlags& reward,
                                       const PromptFlags& rows,
                                       const Placement& placement,
                                       const PairReport& report);

}  // namespace troupe::app
