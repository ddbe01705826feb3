// How often a reward model scores the better answer of a pair above the worse one.
#pragma once

#include "apps/troupe/batch/prompt_flags.hpp"
#include "apps/troupe/flags.hpp"
#include "apps/troupe/placement.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::app {

struct PairFlags {
  std::string model, chosen = "chosen", rejected = "rejected";

  // Appends the flags that fill this object, which must outlive their parsing.
  void add_to(std::vector<Flag>& flags);
};

// Scores all pairs of `rows` and prints accuracy (equal scores count a half) and mean margin with
// 95 % bootstrap intervals. Errors: kData naming file:line for a row without the columns.
core::Result<void> print_pair_accuracy(const PairFlags& pairs,
                                       const PromptFlags& rows,
                                       const Placement& placement,
                                       bool json);

}  // namespace troupe::app
