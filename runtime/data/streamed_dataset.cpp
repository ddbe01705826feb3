#include "runtime/data/streamed_dataset.hpp"

#include "runtime/data/row_stream.hpp"
#include "runtime/data/supervised_coder.hpp"
#include "runtime/data/table_reader.hpp"

#include <utility>

namespace troupe::data {
namespace {

const text::ChatTemplate* chat_of(const StreamSettings& settings) {
  return settings.chat ? &*settings.chat : nullptr;
}

class StreamedRows final : public PlacedRows {
 public:
  StreamedRows(std::shared_ptr<const StreamSettings> settings,
               const std::shared_ptr<const RowIndex>& index,
               BufferOrder order)
      : settings_(std::move(settings)),
        index_(index),
        stream_(index, std::move(order), settings_->key, kRowNumbers),
        coder_(settings_->tokenizer, chat_of(*settings_), settings_->columns.add_special_tokens) {}

  std::uint64_t size() const override { return index_->rows(); }
  bool reads_files() const override { return true; }
  Result<SupervisedRow> at(std::uint64_t place) override {
    TROUPE_TRY_ASSIGN(read, stream_.at(place));
    auto coded = coded_row(read->json, settings_->columns, coder_);
    if (!coded) return fail(coded.error().within(read->where));
    coded_ = std::move(*coded);
    SupervisedRow row = view_of(coded_);
    row.id = read->row;
    row.file = index_->name(read->file);
    row.line = number_in(read->where);
    return row;
  }

 private:
  const std::shared_ptr<const StreamSettings> settings_;
  const std::shared_ptr<const RowIndex> index_;
  RowStream stream_;
  const DialogueCoder coder_;
  CodedRow coded_;
};

}  // namespace

Result<std::shared_ptr<const StreamedDataset>> StreamedDataset::survey(StreamSettings settings,
                                                                       const Check& check) {
  std::shared_ptr<StreamedDataset> set(new StreamedDataset(std::move(settings)));
  TROUPE_TRY(set->read_files(check));
  return std::shared_ptr<const StreamedDataset>(std::move(set));
}

Result<void> StreamedDataset::read_files(const Check& check) {
  SupervisedCoder coder(settings_->columns, settings_->limits, settings_->tokenizer,
                        chat_of(*settings_));
  const std::uint64_t most = settings_->limits.max_samples;
  const auto full = [&] { return most > 0 && index_->rows() >= most; };
  Result<void> checked;
  const TakeRow take = [&](const Json& json, const std::string& where) -> Result<bool> {
    TROUPE_TRY_ASSIGN(coded, coder.take(json, where));
    index_->add(coded.has_value());
    if (!coded) return true;
    SupervisedRow row = view_of(*coded);
    row.file = index_->name(index_->files() - 1);
    row.line = number_in(where);
    tokens_ += static_cast<std::uint64_t>(row.tokens());
    checked = check(row);
    return checked.has_value() && !full();
  };
  TROUPE_TRY_ASSIGN(files, files_of_sets(settings_->files));
  for (const std::string& file : files) {
    if (full()) break;
    TROUPE_TRY(index_->begin_file(file, settings_->key));
    TROUPE_TRY(read_table(file, settings_->key, kRowNumbers, take));
    TROUPE_TRY(checked);
  }
  if (index_->rows() == 0) return coder.none_left(settings_->files);
  notes_ = coder.notes();
  has_chats_ = coder.has_chats();
  tools_warning_ = coder.tools_warning();
  return {};
}

std::unique_ptr<PlacedRows> StreamedDataset::reader(std::uint64_t buffer,
                                                    std::uint64_t seed) const {
  return std::make_unique<StreamedRows>(settings_, index_, BufferOrder(size(), buffer, seed));
}

}  // namespace troupe::data
