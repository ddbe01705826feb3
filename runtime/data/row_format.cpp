#include "runtime/data/row_format.hpp"

#include "runtime/data/default_columns.hpp"
#include "runtime/text/messages.hpp"

#include <algorithm>

namespace troupe::data {
namespace {

using text::ChatMessage;

constexpr const char* kConversations = "conversations";
constexpr const char* kInstruction = "instruction";

bool is_list(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_array();
}

bool is_text(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_string();
}

// A text column that may be absent or null.
Result<std::string> optional_text(const Json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end() || found->is_null()) return std::string();
  if (found->is_string()) return found->get<std::string>();
  return bad_row("column '" + std::string(key) + "' must be text");
}

// Reads one answer of a pair: text, one turn of the assistant, or a list with one such turn.
Result<ChatMessage> pair_answer(const Json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end()) {
    return bad_row("no column '" + std::string(key) + "' (there is: " + columns_of(row) + ")",
                   "a pair needs `chosen` and `rejected`");
  }
  ChatMessage answer{"assistant", ""};
  if (found->is_string()) {
    answer.content = found->get<std::string>();
  } else {
    const Json list = found->is_array() ? *found : Json::array({*found});
    TROUPE_TRY_ASSIGN(turns, messages_in(list, key));
    if (turns.size() != 1 || turns[0].role != "assistant") {
      return bad_row("column '" + std::string(key) +
                     "' must be text or one turn of the assistant (gpt)");
    }
    answer = std::move(turns[0]);
  }
  if (text::says_nothing(answer)) return bad_row("column '" + std::string(key) + "' is empty");
  return answer;
}

// Reads `chosen` and `rejected` of a pair; does nothing for kOne.
Result<void> read_pair(const Json& row, Answers answers, KnownRow& known) {
  if (answers == Answers::kOne) return {};
  TROUPE_TRY_SET(known.chosen, pair_answer(row, "chosen"));
  TROUPE_TRY_SET(known.rejected, pair_answer(row, "rejected"));
  return {};
}

Result<void> put_system(const Json& row, KnownRow& known) {
  TROUPE_TRY_ASSIGN(system, optional_text(row, "system"));
  if (system.empty()) return {};
  if (!known.prompt.empty() && known.prompt.front().role == "system") {
    return bad_row("a system text in column 'system' and another as the first turn",
                   "leave one of them out");
  }
  known.prompt.insert(known.prompt.begin(), {"system", std::move(system)});
  return {};
}

Result<KnownRow> sharegpt_row(const Json& row, Answers answers) {
  KnownRow known;
  TROUPE_TRY_SET(known.inputs, chat_inputs(row, true));
  TROUPE_TRY_SET(known.prompt, messages_in(row[kConversations], kConversations));
  TROUPE_TRY(put_system(row, known));
  TROUPE_TRY(read_pair(row, answers, known));
  if (known.prompt.back().role == "assistant") {
    if (answers == Answers::kPair) {
      return bad_row(
          "column 'conversations' ends with the assistant's turn, and so do 'chosen' and "
          "'rejected'",
          "end it with the turn they answer");
    }
    known.answer = std::move(known.prompt.back());
    known.prompt.pop_back();
    if (text::says_nothing(*known.answer))
      return bad_row("column 'conversations': the last turn, the assistant's, is empty");
  }
  const bool asked = std::any_of(known.prompt.begin(), known.prompt.end(),
                                 [](const ChatMessage& turn) { return turn.role == "user"; });
  if (!asked) return bad_row("column 'conversations' has no turn of the user (human)");
  return known;
}

// Appends the turns of column `history`, [[question, answer], ...], to the prompt.
Result<void> put_history(const Json& row, KnownRow& known) {
  const auto history = row.find("history");
  if (history == row.end() || history->is_null()) return {};
  const auto wrong = [&] {
    return bad_row(
        "column 'history' must be a list of pairs of texts, a question and its "
        "answer each");
  };
  if (!history->is_array()) return wrong();
  for (const Json& pair : *history) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string())
      return wrong();
    known.prompt.push_back({"user", pair[0].get<std::string>()});
    known.prompt.push_back({"assistant", pair[1].get<std::string>()});
  }
  return {};
}

Result<KnownRow> alpaca_row(const Json& row, Answers answers) {
  KnownRow known;
  TROUPE_TRY_SET(known.inputs, chat_inputs(row, true));
  TROUPE_TRY(put_history(row, known));
  TROUPE_TRY(put_system(row, known));
  TROUPE_TRY_ASSIGN(question, optional_text(row, kInstruction));
  TROUPE_TRY_ASSIGN(input, optional_text(row, "input"));
  if (!input.empty()) question += (question.empty() ? "" : "\n") + input;
  if (question.empty()) return bad_row("columns 'instruction' and 'input' are empty");
  known.prompt.push_back({"user", std::move(question)});
  TROUPE_TRY(read_pair(row, answers, known));
  if (answers == Answers::kPair) return known;
  TROUPE_TRY_ASSIGN(output, optional_text(row, "output"));
  if (!output.empty()) known.answer = ChatMessage{"assistant", std::move(output)};
  return known;
}

}  // namespace

RowFormat format_of(const Json& row, const std::string& key) {
  const bool own_name = key == "input" || key == kInstruction || key == kConversations;
  if (!own_name && !key.empty() && row.contains(key)) return RowFormat::kColumns;
  if (!own_name && !is_default_prompt(key)) return RowFormat::kColumns;  // which lacks it
  if (is_list(row, kConversations)) return RowFormat::kShareGpt;
  if (is_text(row, kInstruction)) return RowFormat::kAlpaca;
  return RowFormat::kColumns;
}

Result<KnownRow> known_row(const Json& row, RowFormat format, Answers answers) {
  return format == RowFormat::kShareGpt ? sharegpt_row(row, answers) : alpaca_row(row, answers);
}

Result<std::string> single_text(const KnownRow& row) {
  const bool plain = row.prompt.size() == 1 && row.prompt.front().json.empty() && !row.inputs.any();
  if (plain) return row.prompt.front().content;
  return bad_row("its system text, earlier turns or tools have no place in --data.input_template",
                 "leave the template away, and the chat template takes them");
}

std::string format_note(const std::string& where,
                        RowFormat format,
                        bool as_text,
                        const std::string& what_else) {
  std::string note = where;
  if (format == RowFormat::kStepwise)
    return note + ": rows of steps (`prompt` and `completions`); a placeholder follows each step";
  if (format == RowFormat::kMessages) note += ": rows of messages";
  if (format == RowFormat::kShareGpt) note += ": ShareGPT rows (conversations of from and value)";
  if (format == RowFormat::kAlpaca)
    note += ": Alpaca rows (`input` follows `instruction` on a new line)";
  note += as_text ? "; they go into data.input_template"
                  : "; the chat template is applied, as with --data.apply_chat_template true";
  return what_else.empty() ? note : note + "; " + what_else;
}

}  // namespace troupe::data
