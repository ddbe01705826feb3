#include "runtime/data/prompt_dataset.hpp"

#include "runtime/data/chat_rows.hpp"
#include "runtime/data/default_columns.hpp"
#include "runtime/data/row_format.hpp"
#include "runtime/data/row_kinds.hpp"
#include "runtime/data/table_reader.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <utility>

namespace troupe::data {
namespace {

Result<std::string> label_of(const Json& row, const std::string& key) {
  TROUPE_TRY_ASSIGN(found, column(row, key, "data.label_key"));
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_null()) return parse::written_text(*found);
  return bad_row("column '" + key + "' is null", "give a label, or leave the row out");
}

Result<void> known_prompt(const Json& row, const DatasetColumns& columns, PromptRow& out) {
  TROUPE_TRY_ASSIGN(known, known_row(row, out.format, Answers::kOne));
  if (columns.input_template.empty()) {
    out.inputs = std::move(known.inputs);
    out.messages = std::move(known.prompt);
    out.conversational = out.format == RowFormat::kShareGpt;
    return {};
  }
  TROUPE_TRY_ASSIGN(text, single_text(known));
  out.prompt = fill_template(columns.input_template, text);
  return {};
}

Result<void> column_prompt(const Json& row, const DatasetColumns& columns, PromptRow& out) {
  const std::string key = prompt_column(row, columns.input_key);
  TROUPE_TRY_ASSIGN(input, column(row, key, "data.input_key"));
  if (input->is_string()) {
    out.prompt = input->get<std::string>();
    if (out.prompt.empty()) return bad_row("column '" + key + "' is empty");
    if (columns.apply_chat_template) {
      TROUPE_TRY_SET(out.inputs, chat_inputs(row));
      out.messages.push_back({"user", std::exchange(out.prompt, {})});
      return {};
    }
    if (!columns.input_template.empty())
      out.prompt = fill_template(columns.input_template, out.prompt);
    return refuse_chat_inputs(row, "a text prompt");
  }
  if (!input->is_array()) return bad_row("column '" + key + "' must be text or a list of messages");
  if (!columns.input_template.empty()) {
    return bad_row(
        "column '" + key + "' is a list of messages, which --data.input_template has no place for",
        "leave the template away");
  }
  out.format = RowFormat::kMessages;
  TROUPE_TRY_SET(out.messages, messages_in(*input, key));
  TROUPE_TRY_SET(out.inputs, chat_inputs(row));
  out.conversational = true;
  // The prompt of an answered dialogue ends before the last answer.
  const bool answered = out.messages.size() > 1 && out.messages.back().role == "assistant";
  if (key == "messages" && answered) out.messages.pop_back();
  return {};
}

Result<void> read_listed(const Json& row, const DatasetColumns& columns, PromptRow& out) {
  out.format = columns.known_formats ? format_of(row, columns.input_key) : RowFormat::kColumns;
  return out.format == RowFormat::kColumns ? column_prompt(row, columns, out)
                                           : known_prompt(row, columns, out);
}

Result<void> read_prompt(const Json& row, const DatasetColumns& columns, PromptRow& out) {
  const MessageColumns lists{{"messages", "conversations", "prompt", columns.input_key}, {}};
  TROUPE_TRY_ASSIGN(listed, with_listed_messages(row, lists, kPromptNumbers));
  const Json& read = listed ? *listed : row;
  const auto done = read_listed(read, columns, out);
  if (done) return {};
  return core::fail(about_kind(done.error(), read, config::MethodRows::kPrompt));
}

}  // namespace

Result<PromptRow> prompt_of_row(const Json& json,
                                const std::string& where,
                                const DatasetColumns& columns) {
  PromptRow row;
  row.where = where;
  TROUPE_TRY(read_prompt(json, columns, row));
  if (!columns.label_key.empty()) TROUPE_TRY_SET(row.label, label_of(json, columns.label_key));
  row.columns_json = parse::written_text(json);
  return row;
}

Result<std::vector<PromptRow>> load_prompts(const std::string& files,
                                            const DatasetColumns& columns) {
  std::vector<PromptRow> rows;
  const auto full = [&] { return columns.max_samples > 0 && rows.size() >= columns.max_samples; };
  const TakeRow take = [&](const Json& json, const std::string& where) -> Result<bool> {
    TROUPE_TRY_ASSIGN(row, prompt_of_row(json, where, columns));
    rows.push_back(std::move(row));
    return !full();
  };
  TROUPE_TRY_ASSIGN(all, files_of_sets(files));
  for (const std::string& file : all) {
    if (full()) break;
    TROUPE_TRY(read_table(file, "data.prompt_dataset", kPromptNumbers, take));
  }
  if (rows.empty()) return no_prompts(files);
  return rows;
}

core::Failure no_prompts(const std::string& files) {
  return bad_row("dataset " + files + ": holds no rows", "add prompts or choose another");
}

PromptNotes::PromptNotes(const DatasetColumns& columns)
    : templated_(!columns.input_template.empty()), said_{RowFormat::kColumns} {
  if (columns.apply_chat_template) said_.insert(RowFormat::kMessages);
}

void PromptNotes::add(const PromptRow& row) {
  if (!said_.insert(row.format).second) return;
  notes_.push_back(format_note(row.where, row.format, templated_,
                               "an answer in the row is not part of the prompt"));
}

std::vector<std::string> prompt_notes(std::span<const PromptRow> rows,
                                      const DatasetColumns& columns) {
  PromptNotes notes(columns);
  for (const PromptRow& row : rows)
    notes.add(row);
  return notes.all();
}

std::vector<std::string> prompt_columns(const DatasetColumns& columns) {
  if (!columns.input_template.empty()) return {};
  std::vector<std::string> names = {columns.input_key};
  for (const char* name : {"messages", "conversations", "instruction", "input", "prompt", "system",
                           "history", kToolsColumn, kVariablesColumn}) {
    if (name != columns.input_key) names.emplace_back(name);
  }
  return names;
}

Result<ChatPrompt> chat_of_row(const std::string& columns_json, const DatasetColumns& columns) {
  const Json row = parse::written_json<Json>(columns_json);
  if (!row.is_object()) return bad_row("the row: is no JSON object");
  PromptRow out;
  const auto read = read_prompt(row, columns, out);
  if (!read) return core::fail(read.error().within("the row"));
  return ChatPrompt{std::move(out.messages), std::move(out.inputs)};
}

text::ChatInputs inputs_of_row(const std::string& columns_json) {
  const Json row = parse::written_json<Json>(columns_json);
  if (!row.is_object()) return {};
  auto inputs = chat_inputs(row);
  return inputs ? std::move(*inputs) : text::ChatInputs{};
}

}  // namespace troupe::data
