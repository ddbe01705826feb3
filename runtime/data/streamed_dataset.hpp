// A dataset for supervised training that is never held: one pass over its files checks every row
// and counts them, and readers encode rows again when training takes them (row_stream.hpp). Built
// once, then read-only; any thread. Memory: that of RowIndex, and of each reader that of RowStream.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/placed_rows.hpp"
#include "runtime/data/row_index.hpp"
#include "runtime/data/supervised_dataset.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::data {

// What rows are read with.
struct StreamSettings {
  std::string files{};  // as table_list.hpp has them; sets follow each other
  std::string key{};    // the setting that holds them
  SupervisedColumns columns{};
  SupervisedLimits limits{};  // without each_set
  text::Tokenizer tokenizer;
  std::optional<text::ChatTemplate> chat{};
};

class StreamedDataset {
 public:
  using Check = std::function<core::Result<void>(const SupervisedRow&)>;

  // Reads all files once and calls `check` with each row that is used. Errors: those of
  // SupervisedDataset::load, of RowIndex, and of `check`.
  static core::Result<std::shared_ptr<const StreamedDataset>> survey(StreamSettings settings,
                                                                     const Check& check);

  std::uint64_t size() const { return index_->rows(); }
  std::uint64_t tokens() const { return tokens_; }
  std::uint64_t dropped() const { return index_->dropped(); }
  const std::vector<std::string>& notes() const { return notes_; }
  bool has_chats() const { return has_chats_; }
  const std::string& tools_warning() const { return tools_warning_; }

  // A reader of the rows in the order of a buffer of `buffer` rows. It may outlive this object.
  std::unique_ptr<PlacedRows> reader(std::uint64_t buffer, std::uint64_t seed) const;

 private:
  explicit StreamedDataset(StreamSettings settings)
      : settings_(std::make_shared<const StreamSettings>(std::move(settings))) {}
  core::Result<void> read_files(const Check& check);

  const std::shared_ptr<const StreamSettings> settings_;
  std::shared_ptr<RowIndex> index_ = std::make_shared<RowIndex>();
  std::uint64_t tokens_ = 0;
  bool has_chats_ = false;
  std::vector<std::string> notes_;
  std::string tools_warning_;
};

}  // namespace troupe::data
