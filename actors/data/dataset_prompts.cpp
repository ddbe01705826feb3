// Renders, tokenises and checks the rows of a dataset.
#include "actors/data/dataset_prompts.hpp"

namespace troupe::actors {
namespace {

core::Result<std::string> text_of_row(const data::PromptRow& row, const text::ChatTemplate* chat) {
  if (row.messages.empty()) return row.prompt;
  if (chat == nullptr) {
    return core::fail(core::ErrorCode::kConfig,
                      row.where + ": a chat prompt, but the model folder has no chat template; add "
                      "chat_template.jinja to it or use a text column (--data.input_key)");
  }
  std::vector<text::ChatMessage> messages;
  for (const auto& message : row.messages) messages.push_back({message.role, message.content});
  auto rendered = chat->render(messages);
  if (!rendered) return core::fail(rendered.error().within(row.where));
  return rendered;
}

}  // namespace

core::Result<std::unique_ptr<DatasetPrompts>> DatasetPrompts::load(
    const DatasetPromptsOptions& options, const text::Tokenizer& tokenizer,
    const text::ChatTemplate* chat) {
  TROUPE_TRY_ASSIGN(rows, data::load_prompts(options.files, options.columns));
  std::vector<Prompt> prompts;
  prompts.reserve(rows.size());
  for (data::PromptRow& row : rows) {
    TROUPE_TRY_ASSIGN(rendered, text_of_row(row, chat));
    auto encoded = tokenizer.encode(rendered);
    if (!encoded) return core::fail(encoded.error().within(row.where));
    if (encoded->ids.empty()) {
      return core::fail(core::ErrorCode::kData, row.where + ": the prompt has no tokens");
    }
    if (options.prompt_tokens_max > 0 && encoded->ids.size() > options.prompt_tokens_max) {
      return core::fail(core::ErrorCode::kData,
                        row.where + ": the prompt has " + std::to_string(encoded->ids.size()) +
                            " tokens, more than --data.prompt_max_len " +
                            std::to_string(options.prompt_tokens_max));
    }
    prompts.push_back({prompts.size(), std::move(encoded->ids), std::move(rendered),
                       std::move(row.label), std::move(row.columns_json)});
  }
  std::optional<data::PromptOrder> order;
  if (options.shuffle) order.emplace(prompts.size(), options.seed);
  return std::unique_ptr<DatasetPrompts>(new DatasetPrompts(std::move(prompts), std::move(order)));
}

core::Result<Prompt> DatasetPrompts::at(std::uint64_t position) {
  const std::uint64_t row = order_ ? order_->row_at(position) : position % prompts_.size();
  return prompts_[row];
}

}  // namespace troupe::actors
