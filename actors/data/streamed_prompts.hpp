// The prompts of a dataset that is never held: one pass over its files checks every row, and each
// prompt is rendered and tokenised again when a ticket takes it (runtime/data/row_stream.hpp). One
// owner, one thread.
#pragma once

#include "actors/data/dataset_prompts.hpp"
#include "runtime/data/row_stream.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace troupe::actors::data {

class StreamedPrompts final : public DatasetPrompts {
 public:
  // As DatasetPrompts::load, with options.shuffle_buffer above 0. Further errors: those of
  // RowIndex.
  static core::Result<std::unique_ptr<DatasetPrompts>> load(const DatasetPromptsOptions& options,
                                                            const text::Tokenizer& tokenizer,
                                                            const text::ChatTemplate* chat);

  std::uint64_t size() const override { return index_->rows(); }
  core::Result<Prompt> at(std::uint64_t position) override;
  bool has_column(const std::string& name) const override { return names_.contains(name); }
  std::string columns() const override { return columns_of_first_; }

 private:
  StreamedPrompts(const DatasetPromptsOptions& options,
                  const text::Tokenizer& tokenizer,
                  const text::ChatTemplate* chat);
  core::Result<void> survey(const DatasetPromptsOptions& options);

  const troupe::data::DatasetColumns columns_;
  const troupe::data::Domains domains_;
  const text::Tokenizer tokenizer_;
  const std::optional<text::ChatTemplate> chat_;
  const std::shared_ptr<troupe::data::RowIndex> index_;
  std::set<std::string> names_;  // of columns of all rows
  std::string columns_of_first_;
  std::optional<troupe::data::RowStream> stream_;  // once all files were read
};

}  // namespace troupe::actors::data
