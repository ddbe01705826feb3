// Rows of a data set as a method reads them, one by one: with its columns, template and tokenizer.
// Unlike a run, which ends at the first bad row, a caller may go on behind one. One thread.
#pragma once

#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"
#include "runtime/data/prompt_dataset.hpp"
#include "runtime/data/row_figures.hpp"
#include "runtime/data/supervised_rows.hpp"
#include "runtime/text/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe::app {

// A row that was read. Of prompts, only `coded.prompt` and `label` are filled.
struct MethodRow {
  data::CodedRow coded;
  std::string label;
};

class MethodRows {
 public:
  // Reads the tokenizer and the template of the model. Errors name the key.
  static Result<MethodRows> load(const config::TrainConfig& config);

  Result<MethodRow> read(const data::Json& row, const std::string& where) const;

  // The row as figures count it; it borrows from `row`.
  static data::SupervisedRow view(const MethodRow& row);
  data::RowFigures figures() const { return {kind_, longest_}; }

  std::optional<data::RowKind> kind() const { return kind_; }
  // How the numbers of its rows are read.
  parse::Numbers numbers() const { return kind_ ? data::kRowNumbers : data::kPromptNumbers; }
  std::uint64_t longest() const { return longest_; }
  const text::Tokenizer& tokenizer() const { return tokenizer_; }
  // The template that rows go through; null: none.
  const text::ChatTemplate* chat() const {
    return chat_ && kind_ != data::RowKind::kText ? &*chat_ : nullptr;
  }

 private:
  MethodRows(text::Tokenizer tokenizer, std::optional<text::ChatTemplate> chat)
      : tokenizer_(std::move(tokenizer)), chat_(std::move(chat)) {}

  Result<MethodRow> read_prompt(const data::Json& row, const std::string& where) const;

  text::Tokenizer tokenizer_;
  std::optional<text::ChatTemplate> chat_;
  std::optional<data::RowKind> kind_;  // nullopt: prompts
  data::SupervisedColumns columns_;
  data::DatasetColumns prompt_columns_;
  std::uint64_t longest_ = 0;  // tokens of a row, or of a prompt, that fit
};

// Calls `take` with each row of the sets, and `refuse` with the error of each that cannot be read
// or that `take` refuses. Goes on behind bad rows as far as the format allows. Stops after `most`
// rows (0: never). Errors: of the files themselves.
using TakeJson = std::function<Result<void>(const data::Json& row, const std::string& where)>;
using Refuse = std::function<void(const core::Error& error, const std::string& where)>;
Result<void> each_row(const std::string& sets,
                      std::string_view key,
                      parse::Numbers numbers,
                      std::uint64_t most,
                      const TakeJson& take,
                      const Refuse& refuse);

}  // namespace troupe::app
