#include "runtime/data/supervised_rows.hpp"

#include "runtime/core/texts.hpp"
#include "runtime/data/chat_rows.hpp"
#include "runtime/data/default_columns.hpp"
#include "runtime/data/row_kinds.hpp"
#include "runtime/parse/written_numbers.hpp"
#include "runtime/text/messages.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::data {
namespace {

using text::ChatMessage;

Result<bool> desirable_of(const Json& value, const std::string& key) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number() && (value == 0 || value == 1)) return value == 1;
  if (value.is_string()) {
    const auto& word = value.get_ref<const std::string&>();
    if (word == "true" || word == "True" || word == "1") return true;
    if (word == "false" || word == "False" || word == "0") return false;
  }
  return bad_row("column '" + key + "' must be true or false (or 1 or 0), it is " +
                 parse::written_text(value));
}

Result<double> margin_of(const Json& value, const std::string& key) {
  double margin = parse::number_in(value).value_or(std::nan(""));
  if (value.is_string())
    margin = core::number_of<double>(value.get_ref<const std::string&>()).value_or(margin);
  if (std::isfinite(margin)) return margin;
  return bad_row("column '" + key + "' must be a number");
}

// Reads one row as the settings say. Each function returns the first error that it meets.
class RowCoder {
 public:
  RowCoder(const SupervisedColumns& columns, const DialogueCoder& coder)
      : columns_(columns), coder_(coder) {}

  Result<CodedRow> code(const Json& row) const {
    if (columns_.kind == RowKind::kSteps) return step_row(row, columns_, coder_);
    if (columns_.kind != RowKind::kText) {
      const bool pair = columns_.kind == RowKind::kPair;
      const RowFormat format = format_of(row, pair ? columns_.prompt_key : columns_.input_key);
      if (format != RowFormat::kColumns) return known(format, row);
    }
    switch (columns_.kind) {
      case RowKind::kAnswer:
        return answer_row(row);
      case RowKind::kText:
        return text_row(row);
      case RowKind::kPair:
        return pair_row(row);
      case RowKind::kRated:
      case RowKind::kSteps:
        break;
    }
    return rated_row(row);
  }

 private:
  // Encodes a ShareGPT or Alpaca row.
  Result<CodedRow> known(RowFormat format, const Json& row) const {
    const bool pair = columns_.kind == RowKind::kPair;
    TROUPE_TRY_ASSIGN(read, known_row(row, format, pair ? Answers::kPair : Answers::kOne));
    CodedRow out;
    out.format = format;
    if (pair) {
      TROUPE_TRY_ASSIGN(coded, known_answers(read, {read.chosen, read.rejected}));
      TROUPE_TRY(finish_pair(row, std::move(coded), out));
      return out;
    }
    // An answer column that the settings name takes precedence over the row's own answer.
    if (columns_.output_key != "output" && row.contains(columns_.output_key))
      TROUPE_TRY_SET(read.answer, answer_in(row[columns_.output_key], columns_.output_key));
    if (!read.answer) {
      return bad_row(format == RowFormat::kAlpaca
                         ? "an Alpaca row without text in column 'output', which is the answer"
                         : "column 'conversations' must end with the assistant's turn (gpt), "
                           "it is what the model learns");
    }
    if (columns_.kind == RowKind::kRated) {
      TROUPE_TRY_ASSIGN(label, column(row, columns_.label_key, "data.label_key"));
      TROUPE_TRY_SET(out.desirable, desirable_of(*label, columns_.label_key));
      TROUPE_TRY_ASSIGN(coded, known_answers(read, {*read.answer}));
      out.prompt = std::move(coded.prompt);
      out.answer = std::move(coded.answers[0]);
      return out;
    }
    CodedText coded;
    if (columns_.input_template.empty()) {
      read.prompt.push_back(*read.answer);
      TROUPE_TRY_SET(coded, coder_.dialogue(read.prompt, read.inputs, columns_.multiturn));
    } else {
      TROUPE_TRY_ASSIGN(split, known_answers(read, {*read.answer}));
      coded = joined(split.prompt, split.answers[0]);
    }
    out.answer = std::move(coded.tokens);
    out.learn = std::move(coded.learn);
    return out;
  }

  // Encodes answers to the row's prompt with the chat template or, if set, with
  // data.input_template.
  Result<CodedAnswers> known_answers(const KnownRow& row,
                                     const std::vector<ChatMessage>& answers) const {
    if (columns_.input_template.empty()) return coder_.answers(row.prompt, row.inputs, answers);
    TROUPE_TRY_ASSIGN(words, single_text(row));
    return coder_.plain_answers(fill_template(columns_.input_template, words), answers);
  }

  Result<CodedRow> answer_row(const Json& row) const {
    const std::string key = prompt_column(row, columns_.input_key);
    if (!row.contains(key) && is_text_alone(row)) return text_row(row);
    TROUPE_TRY_ASSIGN(input, column(row, key, "data.input_key"));
    const std::string output_key = answer_column(row, columns_.output_key, input->is_array());
    // Without an answer column, the input column holds the whole dialogue.
    const bool whole = output_key.empty() || (input->is_array() && !row.contains(output_key));
    CodedText coded;
    if (whole) {
      if (!input->is_array()) {
        return bad_row(
            "column '" + key + "' must be a list of messages where no column holds the answer",
            "set --data.output_key");
      }
      TROUPE_TRY_ASSIGN(messages, chat_messages(*input, key));
      TROUPE_TRY_ASSIGN(inputs, chat_inputs(row));
      TROUPE_TRY_SET(coded, coder_.dialogue(messages, inputs, columns_.multiturn));
    } else {
      TROUPE_TRY_ASSIGN(output, column(row, output_key, "data.output_key"));
      TROUPE_TRY_ASSIGN(answer, answer_in(*output, output_key));
      if (input->is_array() && columns_.multiturn) {
        TROUPE_TRY_ASSIGN(messages, chat_messages(*input, key));
        messages.push_back(std::move(answer));
        TROUPE_TRY_ASSIGN(inputs, chat_inputs(row));
        TROUPE_TRY_SET(coded, coder_.dialogue(messages, inputs, true));
      } else {
        TROUPE_TRY_ASSIGN(split, answers(row, *input, key, {answer}, as_chat(*output)));
        coded = joined(split.prompt, split.answers[0]);
      }
    }
    CodedRow out;
    if (input->is_array()) out.format = RowFormat::kMessages;
    if (!whole) note_columns(key, output_key, out);
    out.answer = std::move(coded.tokens);
    out.learn = std::move(coded.learn);
    return out;
  }

  // TRL's rows of language modelling, which `sft` takes as `pretrain` does.
  bool is_text_alone(const Json& row) const {
    const std::string key = text_column(row, columns_.input_key);
    return key != columns_.input_key && row[key].is_string() && !columns_.apply_chat_template;
  }

  // What was found by its name, and not by a setting, is said at the first such row.
  void note_columns(const std::string& prompt, const std::string& answer, CodedRow& out) const {
    const bool named = prompt == columns_.input_key || prompt == "messages";
    if (named && answer == columns_.output_key) return;
    out.found = "column '" + prompt + "' is the prompt of the answer in '" + answer + "'";
  }

  Result<CodedRow> text_row(const Json& row) const {
    const std::string key = text_column(row, columns_.input_key);
    TROUPE_TRY_ASSIGN(input, column(row, key, "data.input_key"));
    if (!input->is_string() || input->get_ref<const std::string&>().empty())
      return bad_row("column '" + key + "' must be text, and not empty");
    const auto& words = input->get_ref<const std::string&>();
    CodedRow out;
    if (columns_.kind == RowKind::kAnswer)
      out.found = "column '" + key + "' is a whole text, all of which is learned";
    TROUPE_TRY_SET(out.answer, coder_.plain_ended(fill_template(columns_.input_template, words)));
    if (out.answer.size() < 2) return bad_row("a text of one token has nothing to predict");
    out.learn.assign(out.answer.size(), 1);
    out.learn[0] = 0;  // no token predicts the first
    return out;
  }

  Result<CodedRow> rated_row(const Json& row) const {
    const std::string key = prompt_column(row, columns_.input_key);
    TROUPE_TRY_ASSIGN(input, column(row, key, "data.input_key"));
    const std::string output_key = answer_column(row, columns_.output_key, input->is_array());
    TROUPE_TRY_ASSIGN(output, column(row, output_key, "data.output_key"));
    TROUPE_TRY_ASSIGN(label, column(row, columns_.label_key, "data.label_key"));
    TROUPE_TRY_ASSIGN(answer, answer_in(*output, output_key));
    CodedRow out;
    note_columns(key, output_key, out);
    TROUPE_TRY_SET(out.desirable, desirable_of(*label, columns_.label_key));
    TROUPE_TRY_ASSIGN(coded, answers(row, *input, key, {answer}, as_chat(*output)));
    out.prompt = std::move(coded.prompt);
    out.answer = std::move(coded.answers[0]);
    if (input->is_array()) out.format = RowFormat::kMessages;
    return out;
  }

  Result<CodedRow> pair_row(const Json& row) const {
    TROUPE_TRY_ASSIGN(coded, pair(row));
    CodedRow out;
    const std::string prompt = prompt_key_of(row);
    const bool messages =
        row[columns_.chosen_key].is_array() || (!prompt.empty() && row[prompt].is_array());
    if (messages) out.format = RowFormat::kMessages;
    if (prompt != columns_.prompt_key) {
      out.found = "column 'prompt' is the prompt of '" + columns_.chosen_key + "' and '" +
                  columns_.rejected_key + "'";
    }
    TROUPE_TRY(finish_pair(row, std::move(coded), out));
    return out;
  }

  Result<void> finish_pair(const Json& row, CodedAnswers&& coded, CodedRow& out) const {
    if (coded.answers[0] == coded.answers[1]) {
      return bad_row(both_answers() + " are equal: there is nothing to prefer",
                     "leave the row out");
    }
    out.prompt = std::move(coded.prompt);
    out.answer = std::move(coded.answers[0]);
    out.rejected = std::move(coded.answers[1]);
    if (!columns_.margin_key.empty()) {
      TROUPE_TRY_ASSIGN(value, column(row, columns_.margin_key, "data.margin_key"));
      TROUPE_TRY_SET(out.margin, margin_of(*value, columns_.margin_key));
    }
    return {};
  }

  // The prompt's column: the one that the settings name, else `prompt` if the row has it. Empty if
  // there is none, or if no setting names one and both answers hold the prompt as well: each is a
  // list of several messages, or a text that begins with the prompt.
  std::string prompt_key_of(const Json& row) const {
    const auto prompt = row.find("prompt");
    if (!columns_.prompt_key.empty() || prompt == row.end()) return columns_.prompt_key;
    const auto whole = [&](const std::string& key) {
      const auto answer = row.find(key);
      if (answer == row.end()) return false;
      if (answer->is_array()) return answer->size() > 1;
      return answer->is_string() && prompt->is_string() &&
             answer->get_ref<const std::string&>().starts_with(
                 prompt->get_ref<const std::string&>());
    };
    return whole(columns_.chosen_key) && whole(columns_.rejected_key) ? "" : "prompt";
  }

  Result<CodedAnswers> pair(const Json& row) const {
    TROUPE_TRY_ASSIGN(chosen, column(row, columns_.chosen_key, "data.chosen_key"));
    TROUPE_TRY_ASSIGN(rejected, column(row, columns_.rejected_key, "data.rejected_key"));
    if (const std::string key = prompt_key_of(row); !key.empty()) {
      TROUPE_TRY_ASSIGN(prompt, column(row, key, "data.prompt_key"));
      TROUPE_TRY_ASSIGN(better, answer_in(*chosen, columns_.chosen_key));
      TROUPE_TRY_ASSIGN(worse, answer_in(*rejected, columns_.rejected_key));
      return answers(row, *prompt, key, {better, worse}, as_chat(*chosen));
    }
    if (chosen->is_array() && rejected->is_array()) return dialogue_pair(row, *chosen, *rejected);
    if (chosen->is_string() && rejected->is_string()) return text_pair(row, *chosen, *rejected);
    return bad_row(both_answers() + " must both be text or both be lists of messages");
  }

  // Encodes two whole dialogues that differ only in the assistant's last turn.
  Result<CodedAnswers> dialogue_pair(const Json& row,
                                     const Json& chosen,
                                     const Json& rejected) const {
    TROUPE_TRY_ASSIGN(better, chat_messages(chosen, columns_.chosen_key));
    TROUPE_TRY_ASSIGN(worse, chat_messages(rejected, columns_.rejected_key));
    const bool fits = better.size() == worse.size() && better.size() > 1 &&
                      better.back().role == "assistant" && worse.back().role == "assistant" &&
                      std::equal(better.begin(), better.end() - 1, worse.begin());
    if (!fits) {
      return bad_row(both_answers() + " must be the same dialogue up to the assistant's last turn",
                     "or give the prompt a column of its own (--data.prompt_key)");
    }
    TROUPE_TRY_ASSIGN(inputs, chat_inputs(row));
    return coder_.answers(std::span(better).first(better.size() - 1), inputs,
                          std::vector<ChatMessage>{better.back(), worse.back()});
  }

  // Encodes two whole texts. Their common leading tokens are the prompt.
  Result<CodedAnswers> text_pair(const Json& row, const Json& chosen, const Json& rejected) const {
    if (columns_.apply_chat_template) {
      return bad_row("texts without a prompt cannot go through the chat template",
                     "set --data.prompt_key, or give lists of messages");
    }
    TROUPE_TRY(refuse_chat_inputs(row, "a text"));
    TROUPE_TRY_ASSIGN(better, coder_.plain_ended(chosen.get_ref<const std::string&>()));
    TROUPE_TRY_ASSIGN(worse, coder_.plain_ended(rejected.get_ref<const std::string&>()));
    const auto [in_better, in_worse] =
        std::mismatch(better.begin(), better.end(), worse.begin(), worse.end());
    const auto shared = static_cast<std::size_t>(in_better - better.begin());
    if (shared <= coder_.front().size())
      return bad_row(both_answers() + " have no beginning in common", "set --data.prompt_key");
    return CodedAnswers{Tokens(better.begin(), in_better),
                        {Tokens(in_better, better.end()), Tokens(in_worse, worse.end())}};
  }

  std::string both_answers() const {
    return "'" + columns_.chosen_key + "' and '" + columns_.rejected_key + "'";
  }

  // Encodes the value of a prompt column (text or messages) and the answers to it.
  Result<CodedAnswers> answers(const Json& row,
                               const Json& prompt,
                               const std::string& prompt_key,
                               const std::vector<ChatMessage>& answers,
                               bool as_chat) const {
    if (prompt.is_array()) {
      TROUPE_TRY_ASSIGN(messages, chat_messages(prompt, prompt_key));
      TROUPE_TRY_ASSIGN(inputs, chat_inputs(row));
      return coder_.answers(messages, inputs, answers);
    }
    if (!prompt.is_string())
      return bad_row("column '" + prompt_key + "' must be text or a list of messages");
    const auto& words = prompt.get_ref<const std::string&>();
    if (words.empty()) return bad_row("column '" + prompt_key + "' is empty");
    if (as_chat) {
      const ChatMessage message{"user", words};
      TROUPE_TRY_ASSIGN(inputs, chat_inputs(row));
      return coder_.answers({&message, 1}, inputs, answers);
    }
    TROUPE_TRY(refuse_chat_inputs(row, "a text prompt"));
    return coder_.plain_answers(fill_template(columns_.input_template, words), answers);
  }

  // Whether to encode a text prompt as a user's turn: if the settings say so, or if its answer is a
  // list of messages.
  bool as_chat(const Json& answer) const {
    return columns_.apply_chat_template || answer.is_array();
  }

  // The answer in a column that holds text, or a list with one message of the assistant.
  Result<ChatMessage> answer_in(const Json& value, const std::string& key) const {
    if (value.is_string()) {
      const auto& words = value.get_ref<const std::string&>();
      if (!words.empty()) return ChatMessage{"assistant", words};
      return bad_row("column '" + key + "' is empty");
    }
    if (!value.is_array())
      return bad_row("column '" + key + "' must be text or a list of messages");
    TROUPE_TRY_ASSIGN(messages, chat_messages(value, key));
    if (messages.size() == 1 && messages[0].role == "assistant" &&
        !text::says_nothing(messages[0])) {
      return std::move(messages[0]);
    }
    return bad_row(
        "column '" + key +
        "' must be one message of the assistant when the prompt has a column of its own");
  }

  // Reads a list of messages. An error if data.input_template is set, which takes only text.
  Result<std::vector<ChatMessage>> chat_messages(const Json& list, const std::string& key) const {
    if (columns_.input_template.empty()) return messages_in(list, key);
    return bad_row(
        "column '" + key + "' is a list of messages, which --data.input_template has no place for",
        "leave the template away");
  }

  const SupervisedColumns& columns_;
  const DialogueCoder& coder_;
};

MessageColumns lists_of(const SupervisedColumns& columns) {
  const bool pair = columns.kind == RowKind::kPair;
  MessageColumns lists{{"messages", "conversations", "prompt"}, {}};
  lists.prompts.push_back(pair ? columns.prompt_key : columns.input_key);
  if (pair) {
    lists.answers = {columns.chosen_key, columns.rejected_key};
  } else {
    lists.answers = {"completion", columns.output_key};
  }
  return lists;
}

config::MethodRows rows_of(RowKind kind) {
  switch (kind) {
    case RowKind::kAnswer:
      return config::MethodRows::kAnswer;
    case RowKind::kText:
      return config::MethodRows::kText;
    case RowKind::kPair:
      return config::MethodRows::kPair;
    case RowKind::kRated:
      return config::MethodRows::kRated;
    case RowKind::kSteps:
      break;
  }
  return config::MethodRows::kSteps;
}

}  // namespace

SupervisedRow view_of(const CodedRow& row) {
  SupervisedRow out;
  out.prompt = row.prompt;
  out.answer = row.answer;
  out.rejected = row.rejected;
  out.learn = row.learn;
  out.margin = row.margin;
  out.desirable = row.desirable;
  out.teacher = row.teacher;
  out.labels = row.labels;
  out.shares = row.shares;
  return out;
}

Result<CodedRow> coded_row(const Json& row,
                           const SupervisedColumns& columns,
                           const DialogueCoder& coder) {
  TROUPE_TRY_ASSIGN(teacher, teacher_of_row(columns.domains, row));
  std::optional<Json> listed;
  if (columns.kind != RowKind::kText)
    TROUPE_TRY_SET(listed, with_listed_messages(row, lists_of(columns), kRowNumbers));
  const Json& read = listed ? *listed : row;
  auto done = RowCoder(columns, coder).code(read);
  if (!done) return core::fail(about_kind(done.error(), read, rows_of(columns.kind)));
  CodedRow coded = std::move(*done);
  coded.teacher = teacher;
  return coded;
}

}  // namespace troupe::data
