#include "apps/troupe/init/init_facts.hpp"

#include "apps/cli/system_facts.hpp"
#include "runtime/core/error_list.hpp"
#include "runtime/data/chat_rows.hpp"
#include "runtime/text/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"

#include <algorithm>
#include <utility>

namespace troupe::app {
namespace {

using core::Result;

data::RowNeed need_of(config::Methods method) {
  return std::ranges::find(config::kMethodRows, method, &config::MethodRow::bit)->rows;
}

// The tokens of a row: of its texts, and of its lists of messages as the template renders them,
// with the row's tools.
std::size_t tokens_of(const data::Json& row,
                      const text::Tokenizer& tokenizer,
                      const std::optional<text::ChatTemplate>& chat) {
  const auto inputs = data::chat_inputs(row);
  const auto options = text::RenderOptions::with(inputs ? *inputs : text::ChatInputs(), true);
  std::size_t tokens = 0;
  for (const data::Json& value : row) {
    const auto text = data::text_of_column(value, chat ? &*chat : nullptr, options);
    if (!text) continue;
    if (const auto ids = tokenizer.ids(*text, true)) tokens += ids->size();
  }
  return tokens;
}

Result<ModelFound> look_at_model(const std::string& name,
                                 const std::optional<data::RowLook>& rows) {
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(name));
  ModelFound found;
  TROUPE_TRY_SET(found.spec, model::read_spec(folder));
  TROUPE_TRY_ASSIGN(tokenizer, text::Tokenizer::load(folder));
  TROUPE_TRY_ASSIGN(chat, text::load_template(folder, false));
  found.has_template = chat.has_value();
  if (!rows) return found;
  std::size_t longest = 0;
  for (const data::Json& row : rows->firsts)
    longest = std::max(longest, tokens_of(row, tokenizer, chat));
  found.row_tokens = static_cast<std::int64_t>(longest);
  return found;
}

MachineFound look_at_machine() {
  const cli::MemoryFacts memory = cli::memory_facts();
  std::uint64_t bytes = memory.available_bytes;
  if (memory.limit_bytes > 0) bytes = std::min(bytes, memory.limit_bytes);
  return {cli::processor_name(), cli::usable_cores(), static_cast<std::int64_t>(bytes)};
}

}  // namespace

Result<InitFacts> find_facts(config::Methods method,
                             const std::string& data,
                             const std::string& model,
                             const data::NamedColumns& named) {
  InitFacts facts;
  facts.machine = look_at_machine();
  core::ErrorList wrong;
  if (!data.empty()) {
    auto rows = data::look_at_rows(data, "data", need_of(method), named);
    if (rows) facts.rows = std::move(*rows);
    if (!rows) wrong.add(rows.error().within("--data"));
  }
  if (!model.empty()) {
    auto found = look_at_model(model, facts.rows);
    if (found) facts.model = std::move(*found);
    if (!found) wrong.add(found.error().within("--model"));
  }
  if (facts.rows && facts.model && facts.rows->chat && !facts.model->has_template) {
    wrong.add(
        core::ErrorCode::kData,
        "--model: " + model + " has no chat template, and " + data + " has " + facts.rows->words,
        "give an instruction model, or put a chat_template.jinja into its folder");
  }
  TROUPE_TRY(wrong.result());
  return facts;
}

}  // namespace troupe::app
