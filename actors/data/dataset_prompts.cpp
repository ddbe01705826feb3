#include "actors/data/dataset_prompts.hpp"

#include "runtime/data/table_reader.hpp"
#include "runtime/data/tools_watch.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace troupe::actors::data {
namespace {

core::Result<std::string> text_of_row(const troupe::data::PromptRow& row,
                                      const text::ChatTemplate* chat) {
  if (row.messages.empty()) return row.prompt;
  if (chat == nullptr) {
    return core::fail(core::ErrorCode::kConfig,
                      row.where + ": a chat prompt, but the model folder has no chat template",
                      "add chat_template.jinja to it or use a text column (--data.input_key)");
  }
  auto rendered = chat->render(row.messages, text::RenderOptions::with(row.inputs, true));
  if (rendered) return rendered;
  core::Error error = rendered.error().within(row.where);
  // The row is at fault where the template refuses it.
  if (error.code == core::ErrorCode::kInvalidArgument) error.code = core::ErrorCode::kData;
  return core::fail(std::move(error));
}

// Bounds the part of a row that rewards read, because it is sent to them with each group.
class RowBound {
 public:
  explicit RowBound(const DatasetPromptsOptions& options) : options_(options) {}

  core::Result<void> check(const std::string& where, const Prompt& prompt) {
    const std::size_t texts = prompt.text.size() + prompt.label.size();
    const std::size_t whole = texts + prompt.messages.size() + prompt.columns.size();
    if (options_.row_bytes_max == 0 || whole <= options_.row_bytes_max) return {};
    if (!reads_) reads_ = options_.reads ? options_.reads() : RewardReads();
    const std::size_t messages = reads_->messages ? prompt.messages.size() : 0;
    const std::size_t bytes = texts + messages + row_with(prompt.columns, *reads_).size();
    if (bytes <= options_.row_bytes_max) return {};
    return core::fail(core::ErrorCode::kData,
                      where + ": prompt, label and what the reward reads of the row (" +
                          reads_->text() + ") have " + std::to_string(bytes) +
                          " bytes, and a row may have " + std::to_string(options_.row_bytes_max),
                      "shorten it or leave it out");
  }

 private:
  const DatasetPromptsOptions& options_;
  std::optional<RewardReads> reads_;
};

// Prompts that are too long: an error, or left out and counted.
class LongPrompts {
 public:
  explicit LongPrompts(const DatasetPromptsOptions& options) : options_(options) {}

  core::Result<bool> drops(const std::string& where, std::size_t tokens) {
    if (options_.prompt_tokens_max == 0 || tokens <= options_.prompt_tokens_max) return false;
    if (options_.drop_too_long) {
      ++dropped_;
      return true;
    }
    return core::fail(
        core::ErrorCode::kData,
        where + ": the prompt has " + std::to_string(tokens) + " tokens, more than " + most(),
        "shorten it, or leave such prompts out with --data.drop_too_long true");
  }
  // Error: none is left.
  core::Result<void> tell(std::size_t kept, std::vector<std::string>& notes) const {
    if (dropped_ == 0) return {};
    const std::string all = std::to_string(kept + dropped_) + " prompts of " + options_.files;
    if (kept == 0) {
      return core::fail(core::ErrorCode::kData, "all " + all + " are longer than " + most());
    }
    notes.push_back(std::to_string(dropped_) + " of the " + all + " are longer than " + most() +
                    " and left out");
    return {};
  }

 private:
  std::string most() const {
    return "--data.prompt_max_len " + std::to_string(options_.prompt_tokens_max);
  }
  const DatasetPromptsOptions& options_;
  std::uint64_t dropped_ = 0;
};

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

}  // namespace

std::string chat_json(const troupe::data::PromptRow& row) {
  if (!row.conversational) return {};
  return text::to_json(row.messages);
}

core::Result<std::unique_ptr<DatasetPrompts>> DatasetPrompts::load(
    const DatasetPromptsOptions& options,
    const text::Tokenizer& tokenizer,
    const text::ChatTemplate* chat) {
  TROUPE_TRY_ASSIGN(loaded, load_rows(options));
  std::vector<std::string> notes = troupe::data::prompt_notes(loaded.rows, options.columns);
  const bool has_chats =
      std::any_of(loaded.rows.begin(), loaded.rows.end(),
                  [](const troupe::data::PromptRow& row) { return !row.messages.empty(); });
  std::vector<Prompt> prompts;
  prompts.reserve(loaded.rows.size());
  RowBound bound(options);
  LongPrompts too_long(options);
  troupe::data::ToolsWatch tools(chat);
  std::vector<std::uint64_t> kept(loaded.sizes.size(), 0);  // rows, by file
  std::uint64_t number = 0;
  std::size_t file = 0;
  for (std::uint64_t left = loaded.sizes.empty() ? 0 : loaded.sizes[0];
       troupe::data::PromptRow & row : loaded.rows) {
    for (; left == 0; left = loaded.sizes[file])
      ++file;
    --left;
    const std::uint64_t place = number++;
    TROUPE_TRY_ASSIGN(rendered, text_of_row(row, chat));
    tools.see(row.messages, row.inputs, row.where);
    auto ids = tokenizer.ids(rendered, options.columns.add_special_tokens && row.messages.empty());
    if (!ids) return core::fail(ids.error().within(row.where));
    if (ids->empty()) {
      return core::fail(core::ErrorCode::kData, row.where + ": the prompt has no tokens");
    }
    TROUPE_TRY_ASSIGN(dropped, too_long.drops(row.where, ids->size()));
    if (dropped) continue;
    const auto teacher = options.domains.teacher_of(row.columns_json);
    if (!teacher) return core::fail(teacher.error().within(row.where));
    ++kept[file];
    prompts.push_back({place, std::move(*ids), std::move(rendered), std::move(row.label),
                       std::move(row.columns_json), chat_json(row), *teacher});
    TROUPE_TRY(bound.check(row.where, prompts.back()));
  }
  TROUPE_TRY(too_long.tell(prompts.size(), notes));
  if (!tools.warning().empty()) notes.push_back(tools.warning());
  std::optional<troupe::data::BlendOrder> order;
  if (options.shuffle) {
    TROUPE_TRY_ASSIGN(blended,
                      troupe::data::BlendOrder::create(kept, options.shares, options.seed));
    order.emplace(std::move(blended));
  }
  std::unique_ptr<DatasetPrompts> made(new DatasetPrompts(std::move(prompts), std::move(order)));
  made->notes_ = std::move(notes);
  made->has_chats_ = has_chats;
  made->tools_warning_ = tools.warning();
  return made;
}

std::uint64_t DatasetPrompts::longest() const {
  std::uint64_t tokens = 0;
  for (const Prompt& prompt : prompts_)
    tokens = std::max<std::uint64_t>(tokens, prompt.tokens.size());
  return tokens;
}

bool DatasetPrompts::has_column(const std::string& name) const {
  return std::any_of(prompts_.begin(), prompts_.end(), [&](const Prompt& prompt) {
    const auto row = nlohmann::json::parse(prompt.columns, nullptr, false);
    return row.is_object() && row.contains(name);
  });
}

std::string DatasetPrompts::columns() const {
  if (prompts_.empty()) return "none";
  const auto row = nlohmann::ordered_json::parse(prompts_.front().columns, nullptr, false);
  return row.is_object() ? troupe::data::columns_of(row) : "none";
}

core::Result<Prompt> DatasetPrompts::at(std::uint64_t position) {
  const std::uint64_t row = order_ ? order_->row_at(position) : position % prompts_.size();
  return prompts_[row];
}

}  // namespace troupe::actors::data
