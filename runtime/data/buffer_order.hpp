// The order in which a run uses the rows of a streamed data set: an endless stream of passes
// (epochs). Rows enter a buffer in the order of the files, and each place takes one of the buffer
// at random, whose room the next row gets; at the end of a pass the buffer is emptied. The draws of
// a pass depend on (seed, epoch) alone, so the row at an index of the stream depends only on seed,
// size of the buffer and index, as with PromptOrder: a run that resumes at a saved index draws
// again from the start of the pass, without reading a row. One owner, one thread. Memory: 8 bytes a
// row of the buffer, and one bit a row.
#pragma once

#include "runtime/core/rng.hpp"

#include <cstdint>
#include <vector>

namespace troupe::data {

class BufferOrder {
 public:
  // `rows` and `buffer` >= 1. A buffer of one row: the order of the files.
  BufferOrder(std::uint64_t rows, std::uint64_t buffer, std::uint64_t seed);

  // The row at `index` of the stream. Asked in ascending order, each costs one draw; going back
  // costs those from the start of the pass.
  std::uint64_t row_at(std::uint64_t index);

  // Of the pass of the latest index. Whether `row` is in the buffer after it, and the first row
  // that is or has yet to enter.
  bool holds(std::uint64_t row) const { return row < entered_ && !given_[row]; }
  std::uint64_t first_left() const;
  std::uint64_t entered() const { return entered_; }  // rows that came into the buffer
  std::uint64_t rows() const { return rows_; }        // places of one pass

 private:
  void begin(std::uint64_t epoch);
  void draw();

  const std::uint64_t rows_, size_, seed_;
  core::Rng rng_{0};
  std::vector<std::uint64_t> buffer_;
  std::vector<bool> given_;  // by row
  std::uint64_t entered_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint64_t drawn_ = 0;   // places of the pass; 0: none is begun
  std::uint64_t latest_ = 0;  // the row of the last of them
};

}  // namespace troupe::data
