#include "apps/troupe/data/method_rows.hpp"

#include "apps/session/roles/run_settings.hpp"
#include "apps/session/supervised_inputs.hpp"
#include "runtime/config/method.hpp"
#include "runtime/data/table_reader.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/spec.hpp"

#include <algorithm>

namespace troupe::app {

Result<MethodRows> MethodRows::load(const config::TrainConfig& config) {
  TROUPE_TRY_ASSIGN(folder, session::trained_folder(config));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(folder));
  TROUPE_TRY_ASSIGN(tokenizer, text::Tokenizer::load(folder));
  TROUPE_TRY_ASSIGN(chat, text::load_template(folder, config.data.apply_chat_template));
  MethodRows rows(std::move(tokenizer), std::move(chat));
  if (config.method == config::kPpo) {
    rows.prompt_columns_.take(config.data);
    rows.longest_ = static_cast<std::uint64_t>(config.data.prompt_max_len);
    return rows;
  }
  TROUPE_TRY_SET(rows.columns_, session::supervised_columns(config, rows.tokenizer_));
  rows.kind_ = rows.columns_.kind;
  rows.longest_ = static_cast<std::uint64_t>(std::min(config.data.max_len, spec.context));
  return rows;
}

Result<MethodRow> MethodRows::read(const data::Json& row, const std::string& where) const {
  if (!kind_) return read_prompt(row, where);
  const data::DialogueCoder coder(tokenizer_, chat_ ? &*chat_ : nullptr,
                                  columns_.add_special_tokens);
  MethodRow out;
  TROUPE_TRY_SET(out.coded, data::coded_row(row, columns_, coder));
  return out;
}

Result<MethodRow> MethodRows::read_prompt(const data::Json& row, const std::string& where) const {
  TROUPE_TRY_ASSIGN(prompt, data::prompt_of_row(row, where, prompt_columns_));
  MethodRow out;
  out.label = std::move(prompt.label);
  std::string text = std::move(prompt.prompt);
  if (!prompt.messages.empty()) {
    if (!chat_) {
      return fail(ErrorCode::kConfig, "a chat prompt, but the model folder has no chat template",
                  "add chat_template.jinja to it or use a text column (--data.input_key)");
    }
    TROUPE_TRY_SET(text,
                   chat_->render(prompt.messages, text::RenderOptions::with(prompt.inputs, true)));
  }
  const bool front = prompt_columns_.add_special_tokens && prompt.messages.empty();
  TROUPE_TRY_SET(out.coded.prompt, tokenizer_.ids(text, front));
  return out;
}

data::SupervisedRow MethodRows::view(const MethodRow& row) {
  return data::view_of(row.coded);
}

Result<void> each_row(const std::string& sets,
                      std::string_view key,
                      parse::Numbers numbers,
                      std::uint64_t most,
                      const TakeJson& take,
                      const Refuse& refuse) {
  TROUPE_TRY_ASSIGN(files, data::files_of_sets(sets));
  std::uint64_t seen = 0;
  for (const std::string& file : files) {
    TROUPE_TRY_ASSIGN(source, data::RowSource::open(file, key, numbers));
    while (most == 0 || seen < most) {
      const auto row = source->next();
      if (!row && !source->goes_on()) return row.failure();
      if (row && *row == nullptr) break;
      ++seen;
      const auto taken = row ? take(**row, source->where()) : Result<void>(row.failure());
      if (!taken) refuse(taken.error(), source->where());
    }
  }
  return {};
}

}  // namespace troupe::app
