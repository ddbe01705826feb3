// Files to rows.
#include "runtime/data/prompt_dataset.hpp"

#include "runtime/data/table_reader.hpp"

#include <utility>

namespace troupe::data {
namespace {

using core::Result;

Result<std::string> label_of(const Json& row, const std::string& where, const std::string& key) {
  TROUPE_TRY_ASSIGN(found, column(row, where, key, "data.label_key"));
  if (found->is_string()) return found->get<std::string>();
  if (found->is_number() || found->is_boolean()) return found->dump();
  return bad_row(where, "column '" + key + "' must be text or a number");
}

Result<PromptRow> row_of(const Json& row, const std::string& where, const DatasetColumns& columns) {
  PromptRow out;
  out.where = where;
  TROUPE_TRY_ASSIGN(input, column(row, where, columns.input_key, "data.input_key"));
  if (input->is_string()) {
    out.prompt = input->get<std::string>();
    if (out.prompt.empty()) return bad_row(where, "column '" + columns.input_key + "' is empty");
    if (columns.as_chat) {
      out.messages.push_back({"user", std::exchange(out.prompt, {})});
    } else if (!columns.input_template.empty()) {
      out.prompt = fill_template(columns.input_template, out.prompt);
    }
  } else if (input->is_array()) {
    if (!columns.as_chat) {
      return bad_row(where, "column '" + columns.input_key +
                                "' is a list of messages; set --data.apply_chat_template");
    }
    TROUPE_TRY_ASSIGN(messages, messages_in(*input, where, columns.input_key));
    out.messages = std::move(messages);
    out.conversational = true;
  } else {
    return bad_row(where, "column '" + columns.input_key + "' must be text or a list of messages");
  }
  if (!columns.label_key.empty()) {
    TROUPE_TRY_ASSIGN(label, label_of(row, where, columns.label_key));
    out.label = std::move(label);
  }
  out.columns_json = row.dump(-1, ' ', false, Json::error_handler_t::replace);
  return out;
}

}  // namespace

Result<std::vector<PromptRow>> load_prompts(const std::string& files,
                                            const DatasetColumns& columns) {
  std::vector<PromptRow> rows;
  const auto full = [&] { return columns.max_samples > 0 && rows.size() >= columns.max_samples; };
  const TakeRow take = [&](const Json& json, const std::string& where) -> Result<bool> {
    TROUPE_TRY_ASSIGN(row, row_of(json, where, columns));
    rows.push_back(std::move(row));
    return !full();
  };
  for (const std::string& file : split_files(files)) {
    if (full()) break;
    TROUPE_TRY(read_table(file, "data.prompt_dataset", take));
  }
  if (rows.empty()) {
    return bad_row("dataset " + files, "holds no rows; add prompts or choose another");
  }
  return rows;
}

}  // namespace troupe::data
