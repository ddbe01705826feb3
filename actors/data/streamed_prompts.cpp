#include "actors/data/streamed_prompts.hpp"

#include "actors/data/prompt_reader.hpp"
#include "runtime/data/table_reader.hpp"

#include <utility>

namespace troupe::actors::data {
namespace {

constexpr const char* kKey = "data.prompt_dataset";

const text::ChatTemplate* pointer(const std::optional<text::ChatTemplate>& chat) {
  return chat ? &*chat : nullptr;
}

}  // namespace

StreamedPrompts::StreamedPrompts(const DatasetPromptsOptions& options,
                                 const text::Tokenizer& tokenizer,
                                 const text::ChatTemplate* chat)
    : columns_(options.columns),
      domains_(options.domains),
      tokenizer_(tokenizer),
      chat_(chat == nullptr ? std::nullopt : std::optional(*chat)),
      index_(std::make_shared<troupe::data::RowIndex>()) {}

core::Result<std::unique_ptr<DatasetPrompts>> StreamedPrompts::load(
    const DatasetPromptsOptions& options,
    const text::Tokenizer& tokenizer,
    const text::ChatTemplate* chat) {
  std::unique_ptr<StreamedPrompts> made(new StreamedPrompts(options, tokenizer, chat));
  TROUPE_TRY(made->survey(options));
  made->stream_.emplace(
      made->index_, troupe::data::BufferOrder(made->size(), options.shuffle_buffer, options.seed),
      kKey, troupe::data::kPromptNumbers);
  return std::unique_ptr<DatasetPrompts>(std::move(made));
}

core::Result<void> StreamedPrompts::survey(const DatasetPromptsOptions& options) {
  PromptReader reader(options, tokenizer_, pointer(chat_));
  troupe::data::PromptNotes notes(columns_);
  core::Result<void> taken;
  const auto full = [&] {
    return columns_.max_samples > 0 && index_->seen() >= columns_.max_samples;
  };
  const troupe::data::TakeRow take = [&](const troupe::data::Json& json,
                                         const std::string& where) -> core::Result<bool> {
    TROUPE_TRY_ASSIGN(row, troupe::data::prompt_of_row(json, where, columns_));
    if (index_->seen() == 0) columns_of_first_ = troupe::data::columns_of(json);
    notes.add(row);
    const auto prompt = reader.take(std::move(row));
    if (!prompt) {
      taken = prompt.failure();
      return false;
    }
    index_->add(prompt->has_value());
    if (prompt->has_value()) {
      for (const auto& [name, value] : json.items())
        names_.insert(name);
    }
    return !full();
  };
  TROUPE_TRY_ASSIGN(files, troupe::data::files_of_sets(options.files));
  for (const std::string& file : files) {
    if (full()) break;
    TROUPE_TRY(index_->begin_file(file, kKey));
    TROUPE_TRY(troupe::data::read_table(file, kKey, troupe::data::kPromptNumbers, take));
    TROUPE_TRY(taken);
  }
  if (index_->seen() == 0) return troupe::data::no_prompts(options.files);
  notes_ = notes.all();
  TROUPE_TRY(reader.tell(notes_));
  longest_ = reader.longest();
  has_chats_ = reader.has_chats();
  tools_warning_ = reader.tools_warning();
  return {};
}

core::Result<Prompt> StreamedPrompts::at(std::uint64_t position) {
  TROUPE_TRY_ASSIGN(read, stream_->at(position));
  auto row = troupe::data::prompt_of_row(read->json, read->where, columns_);
  if (!row) return core::fail(row.error().within(read->where));
  TROUPE_TRY_ASSIGN(prompt, prompt_of(std::move(*row), index_->number_of(read->row), tokenizer_,
                                      pointer(chat_), columns_.add_special_tokens));
  TROUPE_TRY(find_teacher(domains_, read->where, prompt));
  return prompt;
}

}  // namespace troupe::actors::data
