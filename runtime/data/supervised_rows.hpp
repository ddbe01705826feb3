// One row of a file as tokens: which columns are read, as text or as messages, and how they become
// prompt and answers. Internal to this room; stateless over borrowed parts.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/row_format.hpp"
#include "runtime/data/supervised_dataset.hpp"
#include "runtime/data/table_reader.hpp"

#include <string>

namespace troupe::data {

struct CodedRow {
  Tokens prompt;                    // empty for sequences
  Tokens answer;                    // the sequence, the better or the rated answer
  Tokens rejected;                  // of pairs
  std::vector<std::uint8_t> learn;  // of sequences
  double margin = 0;
  bool desirable = true;
  RowFormat format = RowFormat::kColumns;
  bool found_prompt =
      false;  // of pairs: the column `prompt`, which no setting names, is the prompt
};

class RowCoder {
 public:
  RowCoder(const SupervisedColumns& columns, const DialogueCoder& coder)
      : columns_(columns), coder_(coder) {}
  // Errors name `where`.
  core::Result<CodedRow> code(const Json& row, const std::string& where) const;

 private:
  core::Result<CodedRow> known(RowFormat format, const Json& row, const std::string& where) const;
  core::Result<CodedAnswers> known_answers(const KnownRow& row,
                                           const std::vector<std::string>& answers,
                                           const std::string& where) const;
  core::Result<CodedRow> answer_row(const Json& row, const std::string& where) const;
  core::Result<CodedRow> text_row(const Json& row, const std::string& where) const;
  core::Result<CodedRow> pair_row(const Json& row, const std::string& where) const;
  core::Result<CodedRow> rated_row(const Json& row, const std::string& where) const;
  core::Result<CodedAnswers> pair(const Json& row, const std::string& where) const;
  std::string prompt_key_of(const Json& row) const;
  core::Result<void> finish_pair(const Json& row,
                                 const std::string& where,
                                 CodedAnswers&& coded,
                                 CodedRow& out) const;
  core::Result<CodedAnswers> dialogue_pair(const Json& chosen,
                                           const Json& rejected,
                                           const std::string& where) const;
  core::Result<CodedAnswers> text_pair(const Json& chosen,
                                       const Json& rejected,
                                       const std::string& where) const;
  // A prompt column (text or messages) and its answers.
  core::Result<CodedAnswers> answers(const Json& prompt,
                                     const std::string& prompt_key,
                                     const std::vector<std::string>& answers,
                                     bool as_chat,
                                     const std::string& where) const;
  // A prompt of text is a user's turn: the settings say so, or its answer is a message.
  bool as_chat(const Json& answer) const { return columns_.as_chat || answer.is_array(); }
  // Errors also where the settings have a template, into which no messages go.
  core::Result<std::vector<text::ChatMessage>> chat_messages(const Json& list,
                                                             const std::string& where,
                                                             const std::string& key) const;
  // The text of an answer column: text, or a list of one assistant message.
  core::Result<std::string> answer_text(const Json& value,
                                        const std::string& where,
                                        const std::string& key) const;

  const SupervisedColumns& columns_;
  const DialogueCoder& coder_;
};

}  // namespace troupe::data
