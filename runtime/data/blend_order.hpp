// The order in which the rows of several files are used when they are blended by shares. A pass has
// as many places as there are rows; each file gets its share of them, exact to one place, in an
// order made from (seed, pass) alone, and walks through its own rows by a PromptOrder. So the row
// at any place of the endless stream is a pure function of its index. One owner, one thread.
// Memory: 16 bytes a row.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/prompt_order.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::data {

class BlendOrder {
 public:
  // `sizes`: rows of each file, which stand one after the other in the dataset. `shares`: none (the
  // files are one), or one each, of which only the proportions count. Errors (kConfig, naming
  // data.probs): not one for each file, all 0, a share for a file without rows.
  static core::Result<BlendOrder> create(std::span<const std::uint64_t> sizes,
                                         std::span<const double> shares,
                                         std::uint64_t seed);

  // The row, counted over all files, at place `index` of the stream.
  std::uint64_t row_at(std::uint64_t index);
  std::uint64_t rows() const { return rows_; }  // places of one pass

 private:
  BlendOrder() = default;
  void shuffle(std::uint64_t pass);

  struct File {
    std::uint64_t first = 0;   // its first row in the dataset
    std::uint64_t places = 0;  // of one pass
    PromptOrder order;
  };
  struct Turn {
    std::uint32_t file = 0;
    std::uint64_t nth = 0;  // of this file in this pass
  };
  std::vector<File> files_;
  std::vector<Turn> turns_;  // of pass_; empty before the first use, or with one file
  std::uint64_t rows_ = 0;
  std::uint64_t seed_ = 0;
  std::uint64_t pass_ = 0;
};

}  // namespace troupe::data
