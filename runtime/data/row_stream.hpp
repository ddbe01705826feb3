// Reads the rows of a data set in the order in which they enter a buffer (buffer_order.hpp), file
// after file, and gives them by their place in the order of training. Holds the rows of the buffer,
// as they were read, and the last kStream_kept_rows that it gave, for whoever asks again. A place
// that is none of these costs a new look: it skips to the first row that the buffer of that place
// holds. So no place depends on what was asked before. One owner, one thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/buffer_order.hpp"
#include "runtime/data/row_index.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

namespace troupe::data {

struct StreamedRow {
  std::uint64_t row = 0;  // in the index
  std::size_t file = 0;   // of the index
  Json json;
  std::string where;  // "train.parquet:12"
};

class RowStream {
 public:
  // `index` has rows. `key`: the setting that named the files.
  RowStream(std::shared_ptr<const RowIndex> index,
            BufferOrder order,
            std::string key,
            parse::Numbers numbers);

  // The row at a place, valid until the next call. Errors: those of RowIndex::open and RowSource.
  core::Result<const StreamedRow*> at(std::uint64_t place);

  std::uint64_t held() const { return held_.size() + given_.size(); }  // rows in memory

 private:
  void turn_to(std::uint64_t row);
  core::Result<void> read_to(std::uint64_t row);
  core::Result<StreamedRow> read(std::uint64_t row);
  core::Result<void> go_to(const RowIndex::Place& place);

  const std::shared_ptr<const RowIndex> index_;
  BufferOrder order_;
  const std::string key_;
  const parse::Numbers numbers_;

  std::unique_ptr<RowSource> source_;    // null: before the first row
  RowIndex::Place at_;                   // of the source's next row
  std::uint64_t next_ = 0;               // row of the index that is read next
  std::optional<std::uint64_t> latest_;  // place that was given, unless an error came since
  // All rows below next_ that the order has yet to give.
  std::unordered_map<std::uint64_t, StreamedRow> held_;
  std::map<std::uint64_t, StreamedRow> given_;  // by place
};

}  // namespace troupe::data
