#include "actors/data/dataset_prompts.hpp"

#include "actors/data/prompt_reader.hpp"
#include "actors/data/streamed_prompts.hpp"
#include "runtime/data/blend_order.hpp"
#include "runtime/data/table_reader.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace troupe::actors::data {
namespace {

// The rows of all files, one file after the other, and the number of rows of each. Without shares
// the files count as one.
struct Rows {
  std::vector<troupe::data::PromptRow> rows;
  std::vector<std::uint64_t> sizes;
};

core::Result<Rows> load_rows(const DatasetPromptsOptions& options) {
  Rows all;
  std::string_view rest = options.files;
  while (!rest.empty()) {
    const auto end = options.shares.empty() ? rest.size() : std::min(rest.find(','), rest.size());
    TROUPE_TRY_ASSIGN(
        rows, troupe::data::load_prompts(std::string(rest.substr(0, end)), options.columns));
    all.sizes.push_back(rows.size());
    std::move(rows.begin(), rows.end(), std::back_inserter(all.rows));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return all;
}

// All prompts, in memory.
class HeldPrompts final : public DatasetPrompts {
 public:
  static core::Result<std::unique_ptr<DatasetPrompts>> load(const DatasetPromptsOptions& options,
                                                            const text::Tokenizer& tokenizer,
                                                            const text::ChatTemplate* chat) {
    TROUPE_TRY_ASSIGN(loaded, load_rows(options));
    std::unique_ptr<HeldPrompts> made(new HeldPrompts);
    made->notes_ = troupe::data::prompt_notes(loaded.rows, options.columns);
    PromptReader reader(options, tokenizer, chat);
    made->prompts_.reserve(loaded.rows.size());
    std::vector<std::uint64_t> kept(loaded.sizes.size(), 0);  // rows, by file
    std::size_t file = 0;
    for (std::uint64_t left = loaded.sizes.empty() ? 0 : loaded.sizes[0];
         troupe::data::PromptRow & row : loaded.rows) {
      for (; left == 0; left = loaded.sizes[file])
        ++file;
      --left;
      TROUPE_TRY_ASSIGN(prompt, reader.take(std::move(row)));
      if (!prompt) continue;
      ++kept[file];
      made->prompts_.push_back(std::move(*prompt));
    }
    TROUPE_TRY(reader.tell(made->notes_));
    made->longest_ = reader.longest();
    made->has_chats_ = reader.has_chats();
    made->tools_warning_ = reader.tools_warning();
    if (options.shuffle) {
      TROUPE_TRY_ASSIGN(order,
                        troupe::data::BlendOrder::create(kept, options.shares, options.seed));
      made->order_.emplace(std::move(order));
    }
    return std::unique_ptr<DatasetPrompts>(std::move(made));
  }

  std::uint64_t size() const override { return prompts_.size(); }
  core::Result<Prompt> at(std::uint64_t position) override {
    return prompts_[order_ ? order_->row_at(position) : position % prompts_.size()];
  }
  bool has_column(const std::string& name) const override {
    return std::any_of(prompts_.begin(), prompts_.end(), [&](const Prompt& prompt) {
      const auto row = nlohmann::json::parse(prompt.columns, nullptr, false);
      return row.is_object() && row.contains(name);
    });
  }
  std::string columns() const override {
    if (prompts_.empty()) return "none";
    const auto row = nlohmann::ordered_json::parse(prompts_.front().columns, nullptr, false);
    return row.is_object() ? troupe::data::columns_of(row) : "none";
  }

 private:
  std::vector<Prompt> prompts_;
  std::optional<troupe::data::BlendOrder> order_;  // none: file order
};

}  // namespace

std::string chat_json(const troupe::data::PromptRow& row) {
  if (!row.conversational) return {};
  return text::to_json(row.messages);
}

core::Result<std::unique_ptr<DatasetPrompts>> DatasetPrompts::load(
    const DatasetPromptsOptions& options,
    const text::Tokenizer& tokenizer,
    const text::ChatTemplate* chat) {
  if (options.shuffle_buffer > 0) return StreamedPrompts::load(options, tokenizer, chat);
  return HeldPrompts::load(options, tokenizer, chat);
}

}  // namespace troupe::actors::data
