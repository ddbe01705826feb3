// Blends the rows of several files by shares into one endless stream. A pass over the stream has as
// many places as the files have rows. Each file gets its share of the places, rounded up or down to
// a whole number. Their order depends on (seed, pass) alone, and a PromptOrder chooses the file's
// row for each. So the row at an index of the stream depends only on seed and index. One owner, one
// thread. Memory: 24 bytes a row, 8 without shares.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/prompt_order.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::data {

class BlendOrder {
 public:
  // `sizes`: the number of rows of each file; the dataset holds one file after the other. `shares`:
  // a weight for each file, of which only the proportions count, or empty to treat all files as
  // one. `runs`: the first row of each run of neighbours that stay together (prompt_order.hpp)
  // while all files are one; empty: each row is a run. Errors (kConfig, naming data.probs): another
  // number of shares than of files, all shares 0, a share above 0 for a file without rows, runs
  // with shares (naming data.rows_together).
  static core::Result<BlendOrder> create(std::span<const std::uint64_t> sizes,
                                         std::span<const double> shares,
                                         std::uint64_t seed,
                                         std::vector<std::uint64_t> runs = {});

  // The row at `index` of the stream, counted from the first row of the first file.
  std::uint64_t row_at(std::uint64_t index);
  std::uint64_t rows() const { return rows_; }  // places of one pass

 private:
  BlendOrder() = default;
  void shuffle(std::uint64_t pass);

  struct File {
    std::uint64_t first = 0;   // its first row in the dataset
    std::uint64_t places = 0;  // its places in each pass
    PromptOrder order;
  };
  struct Turn {
    std::uint32_t file = 0;
    std::uint64_t nth = 0;  // how many earlier places of the pass belong to the same file
  };
  std::vector<File> files_;
  std::vector<Turn> turns_;  // the places of pass_; empty before the first use, or with one file
  std::uint64_t rows_ = 0;
  std::uint64_t seed_ = 0;
  std::uint64_t pass_ = 0;
};

}  // namespace troupe::data
