// The order in which a run uses the rows of a dataset: an endless stream of passes (epochs), each a
// permutation that depends on (seed, epoch) alone. So the row at an index of the stream depends
// only on seed and index, and a run that resumes at a saved index repeats no row and skips none.
// Neighbours may stay together: then their runs are permuted. One owner, one thread. Memory: one
// permutation, 8 bytes a row, and 8 bytes a run.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::data {

class PromptOrder {
 public:
  // `rows` >= 1. `runs`: the first row of each run of neighbours that stay together, ascending from
  // 0; empty: each row is a run.
  PromptOrder(std::uint64_t rows, std::uint64_t seed, std::vector<std::uint64_t> runs = {});

  // The row at `index` of the stream.
  std::uint64_t row_at(std::uint64_t index);

 private:
  void shuffle(std::uint64_t epoch);

  std::uint64_t rows_;
  std::uint64_t seed_;
  std::vector<std::uint64_t> runs_;
  std::uint64_t epoch_ = 0;
  std::vector<std::uint64_t> permutation_;  // the rows of epoch_; empty before the first use
};

}  // namespace troupe::data
