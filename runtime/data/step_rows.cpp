// Tokenises rows of kSteps.
#include "runtime/data/chat_rows.hpp"
#include "runtime/data/supervised_rows.hpp"

#include <algorithm>

namespace troupe::data {
namespace {

using text::ChatMessage;

constexpr const char* kSteps = "completions";

class StepCoder {
 public:
  StepCoder(const SupervisedColumns& columns, const DialogueCoder& coder)
      : columns_(columns), marks_(columns.steps), coder_(coder) {}

  Result<CodedRow> code(const Json& row) const {
    CodedRow out;
    const bool listed = !row.contains(columns_.input_key) && row.contains(kSteps);
    if (listed) {
      out.format = RowFormat::kStepwise;
      TROUPE_TRY_SET(out.answer, listed_tokens(row));
    } else {
      TROUPE_TRY_SET(out.answer, text_tokens(row, out.format));
    }
    const bool peers = listed && !row.contains(columns_.label_key) && row.contains("labels");
    const std::string key = peers ? "labels" : columns_.label_key;
    TROUPE_TRY_ASSIGN(labels, column(row, key, "data.label_key"));
    TROUPE_TRY(take_labels(*labels, key, out));
    for (const std::int32_t token : out.answer)
      out.learn.push_back(token == marks_.placeholder_id ? 1 : 0);
    const auto found = std::count(out.learn.begin(), out.learn.end(), std::uint8_t{1});
    if (static_cast<std::size_t>(found) != labels->size()) {
      return bad_row("column '" + key + "' has " + std::to_string(labels->size()) +
                         " labels, but the text has " + std::to_string(found) + " tokens '" +
                         marks_.placeholder + "'",
                     "give one label for each (--prm.placeholder_token names the token, which must "
                     "not melt into what stands next to it)");
    }
    return out;
  }

 private:
  Result<Tokens> text_tokens(const Json& row, RowFormat& format) const {
    TROUPE_TRY_ASSIGN(input, column(row, columns_.input_key, "data.input_key"));
    if (input->is_array() && columns_.input_template.empty()) {
      format = RowFormat::kMessages;
      TROUPE_TRY_ASSIGN(messages, messages_in(*input, columns_.input_key));
      return dialogue(messages, row);
    }
    if (!input->is_string()) {
      return bad_row("column '" + columns_.input_key + "' must be text" +
                     (columns_.input_template.empty()
                          ? " or a list of messages"
                          : "; leave --data.input_template away for lists of messages"));
    }
    if (columns_.apply_chat_template) {
      return bad_row("column '" + columns_.input_key +
                         "' is one text, which the chat template has no turns for",
                     "give a list of messages, or the columns `prompt` and `completions`");
    }
    TROUPE_TRY(refuse_chat_inputs(row, "a text"));
    return coder_.plain(
        fill_template(columns_.input_template, input->get_ref<const std::string&>()));
  }

  Result<Tokens> listed_tokens(const Json& row) const {
    const Json& steps = row[kSteps];
    if (!steps.is_array() || steps.empty())
      return bad_row(std::string("column '") + kSteps + "' must be a list of steps");
    std::string text;
    for (const Json& step : steps) {
      if (!step.is_string() || step.get_ref<const std::string&>().empty())
        return bad_row(std::string("column '") + kSteps + "' must hold texts, none of them empty");
      const auto& words = step.get_ref<const std::string&>();
      if (words.find(marks_.placeholder) != std::string::npos) {
        return bad_row(std::string("column '") + kSteps + "' has a step with '" +
                       marks_.placeholder + "' in it, which marks the end of a step");
      }
      text += (text.empty() ? "" : marks_.separator) + words + marks_.placeholder;
    }
    TROUPE_TRY_ASSIGN(prompt, column(row, "prompt", "data.input_key"));
    if (!prompt->is_string()) return bad_row("column 'prompt' must be text");
    const auto& words = prompt->get_ref<const std::string&>();
    if (columns_.apply_chat_template) {
      const std::vector<ChatMessage> turns = {{"user", words}, {"assistant", text}};
      return dialogue(turns, row);
    }
    TROUPE_TRY(refuse_chat_inputs(row, "a text prompt"));
    return coder_.plain(fill_template(columns_.input_template, words) + text);
  }

  Result<Tokens> dialogue(const std::vector<ChatMessage>& messages, const Json& row) const {
    TROUPE_TRY_ASSIGN(inputs, chat_inputs(row));
    TROUPE_TRY_ASSIGN(coded, coder_.dialogue(messages, inputs, false));
    return std::move(coded.tokens);
  }

  Result<void> take_labels(const Json& labels, const std::string& key, CodedRow& out) const {
    if (!labels.is_array() || labels.empty())
      return bad_row("column '" + key + "' must be a list with a label for each step");
    const bool hard = labels[0].is_string();
    for (const Json& label : labels) {
      if (label.is_string() != hard) return bad_row("column '" + key + "' mixes texts and numbers");
      TROUPE_TRY(hard ? add_hard(label, key, out) : add_soft(label, key, out));
    }
    return {};
  }

  Result<void> add_hard(const Json& label, const std::string& key, CodedRow& out) const {
    const auto& words = label.get_ref<const std::string&>();
    const auto known = std::find(marks_.rewards.begin(), marks_.rewards.end(), words);
    if (known != marks_.rewards.end()) {
      const auto place = static_cast<std::size_t>(known - marks_.rewards.begin());
      out.labels.push_back(marks_.reward_ids[place]);
      return {};
    }
    if (!marks_.rewards.empty()) {
      return bad_row("column '" + key + "' has the label '" + words +
                     "', which is none of --prm.reward_tokens");
    }
    auto id = coder_.single(words);
    if (!id) return bad_row("column '" + key + "': the label " + id.error().message);
    out.labels.push_back(*id);
    return {};
  }

  Result<void> add_soft(const Json& label, const std::string& key, CodedRow& out) const {
    if (marks_.rewards.size() != 2) {
      return bad_row("column '" + key +
                         "' has numbers, each the probability of the first of two reward tokens",
                     "give --prm.reward_tokens GOOD,BAD");
    }
    const double share = label.is_boolean()  ? (label.get<bool>() ? 1.0 : 0.0)
                         : label.is_number() ? label.get<double>()
                                             : -1.0;
    if (!(share >= 0 && share <= 1)) {
      return bad_row("column '" + key +
                     "' must hold texts, booleans or numbers from 0 to 1, it has " +
                     label.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    out.shares.push_back(static_cast<float>(share));
    return {};
  }

  const SupervisedColumns& columns_;
  const StepMarks& marks_;
  const DialogueCoder& coder_;
};

}  // namespace

Result<CodedRow> step_row(const Json& row,
                          const SupervisedColumns& columns,
                          const DialogueCoder& coder) {
  return StepCoder(columns, coder).code(row);
}

}  // namespace troupe::data
