// The order in which the rows of a dataset are used: each pass (epoch) is a fresh permutation made
// from (seed, epoch) alone, so the row at any place of the endless stream is a pure function of its
// index. The cursor of a run is that index; resuming at it repeats nothing and skips nothing. Owned
// by the data role; one thread. Memory: one permutation.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::data {

class PromptOrder {
 public:
  // `rows` >= 1.
  PromptOrder(std::uint64_t rows, std::uint64_t seed);

  // The row at place `index` of the stream.
  std::uint64_t row_at(std::uint64_t index);

 private:
  void shuffle(std::uint64_t epoch);

  std::uint64_t rows_;
  std::uint64_t seed_;
  std::uint64_t epoch_ = 0;
  std::vector<std::uint64_t> permutation_;  // of epoch_; empty before the first use
};

}  // namespace troupe::data
