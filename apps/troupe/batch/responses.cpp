#include "apps/troupe/batch/responses.hpp"

#include "runtime/data/default_columns.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace troupe::app {
namespace {

using Json = nlohmann::ordered_json;

// What makes two prompts the same.
std::string text_of(const data::PromptRow& row) {
  if (row.messages.empty()) return row.prompt;
  return '\0' + text::to_json(row.messages) + row.inputs.tools_json + row.inputs.variables_json;
}

std::string id_of(const Json& columns) {
  const auto id = columns.find("prompt_id");
  return id == columns.end() ? std::string() : parse::written_text(*id);
}

}  // namespace

Response response_of(std::string text, double tokens) {
  Response response{std::move(text), 0, tokens};
  response.characters = static_cast<double>(
      std::ranges::count_if(response.text, [](unsigned char c) { return (c & 0xC0) != 0x80; }));
  return response;
}

void ComparedPrompts::add(data::PromptRow row, const std::string& id) {
  by_text_.try_emplace(text_of(row), rows_.size());
  if (!id.empty()) by_id_.try_emplace(id, rows_.size());
  rows_.push_back(std::move(row));
}

Result<ComparedPrompts> ComparedPrompts::load(const PromptFlags& flags, const std::string& file) {
  TROUPE_TRY_ASSIGN(options, flags.options());
  ComparedPrompts prompts;
  if (!flags.data.empty()) {
    TROUPE_TRY_ASSIGN(rows, data::load_prompts(flags.data, options.columns));
    for (data::PromptRow& row : rows)
      prompts.add(std::move(row), std::to_string(prompts.rows_.size()));
    return prompts;
  }
  TROUPE_TRY_ASSIGN(rows, data::load_prompts(file, options.columns));
  for (data::PromptRow& row : rows) {
    const std::string id = id_of(parse::written_json<Json>(row.columns_json));
    const bool known =
        id.empty() ? prompts.by_text_.contains(text_of(row)) : prompts.by_id_.contains(id);
    if (!known) prompts.add(std::move(row), id);
  }
  return prompts;
}

Result<Responses> ComparedPrompts::responses(const PromptFlags& flags,
                                             const std::string& file,
                                             const std::string& response_key) const {
  TROUPE_TRY_ASSIGN(options, flags.options());
  options.columns.label_key.clear();
  options.columns.max_samples = 0;
  TROUPE_TRY_ASSIGN(rows, data::load_prompts(file, options.columns));
  Responses all(rows_.size());
  for (const data::PromptRow& row : rows) {
    const auto bad = [&](const std::string& why, std::string_view advice = {}) {
      return fail(ErrorCode::kData, row.where + ": " + why, advice);
    };
    const Json columns = parse::written_json<Json>(row.columns_json);
    const auto text = columns.find(data::answer_column(columns, response_key, false));
    if (text == columns.end() || !text->is_string())
      return bad("no text in column '" + response_key + "'", "set --response-key");
    const std::string id = id_of(columns);
    const auto by_id = by_id_.find(id);
    const auto found = by_id != by_id_.end() ? by_id : by_text_.find(text_of(row));
    if (by_id == by_id_.end() && found == by_text_.end()) {
      if (flags.samples_max > 0) continue;  // beyond the rows that are compared
      return bad("a response to a prompt that is not compared (--data)");
    }
    if (text_of(rows_[found->second]) != text_of(row))
      return bad("prompt_id " + id + " is another prompt in " + rows_[found->second].where);
    const auto tokens = columns.find("response_tokens");
    const auto known = tokens == columns.end() ? std::nullopt : parse::number_in(*tokens);
    all[found->second].push_back(response_of(text->get<std::string>(), known.value_or(-1)));
  }
  return all;
}

}  // namespace troupe::app
