#include "runtime/data/supervised_coder.hpp"

#include "runtime/data/table_reader.hpp"

#include <algorithm>
#include <cstdlib>

namespace troupe::data {

Result<std::optional<CodedRow>> SupervisedCoder::take(const Json& row, const std::string& where) {
  TROUPE_TRY_ASSIGN(coded, coded_row(row, columns_, coder_));
  note(coded, where);
  see_tools(row, where);
  TROUPE_TRY_ASSIGN(used, fits(coded));
  if (used) return std::optional(std::move(coded));
  ++dropped_;
  return std::optional<CodedRow>();
}

void SupervisedCoder::see_tools(const Json& row, const std::string& where) {
  const bool told = !tools_.warning().empty();
  tools_.see(row, where);
  if (!told && !tools_.warning().empty()) notes_.push_back(tools_.warning());
}

core::Failure SupervisedCoder::none_left(const std::string& files) const {
  return bad_row("dataset " + files + ": " +
                 (dropped_ == 0
                      ? "holds no rows; add some or choose another"
                      : "all " + std::to_string(dropped_) +
                            " rows are longer than --data.max_len " + std::to_string(longest())));
}

std::int64_t SupervisedCoder::longest() const {
  return std::min(limits_.max_len, limits_.context);
}

// Adds a note on how rows are read, at the first row of each format.
void SupervisedCoder::note(const CodedRow& coded, const std::string& where) {
  const bool known = coded.format != RowFormat::kColumns && coded.format != RowFormat::kStepwise;
  const bool chat = columns_.apply_chat_template || (known && columns_.input_template.empty());
  has_chats_ = has_chats_ || (chat && columns_.kind != RowKind::kText);
  const bool said_by_flag = coded.format == RowFormat::kMessages && columns_.apply_chat_template;
  if (coded.format != RowFormat::kColumns && !said_by_flag &&
      formats_.insert(coded.format).second) {
    const bool last = columns_.kind == RowKind::kAnswer && !columns_.multiturn;
    notes_.push_back(
        format_note(where, coded.format, !columns_.input_template.empty(),
                    last ? "the last answer is learned (all of them: --data.multiturn true)" : ""));
  }
  if (!coded.found.empty() && found_.insert(coded.found).second)
    notes_.push_back(where + ": " + coded.found);
}

Result<bool> SupervisedCoder::fits(const CodedRow& coded) {
  const auto tokens = static_cast<std::int64_t>(
      coded.prompt.size() + std::max(coded.answer.size(), coded.rejected.size()));
  if (tokens > longest()) {
    if (limits_.drop_too_long) return false;
    const bool by_model = limits_.context < limits_.max_len;
    return bad_row(std::to_string(tokens) + " tokens, more than " +
                       (by_model ? "the model's context of " : "--data.max_len ") +
                       std::to_string(longest()),
                   "shorten it, or leave such rows out with --data.drop_too_long true");
  }
  for (const Tokens* part : {&coded.prompt, &coded.answer, &coded.rejected}) {
    for (const std::int32_t token : *part) {
      if (token >= 0 && token < limits_.vocab) continue;
      return bad_row("token id " + std::to_string(token) + " is outside the vocabulary of " +
                     std::to_string(limits_.vocab) +
                     ": the tokenizer does not belong to this model");
    }
  }
  return true;
}

std::uint64_t number_in(const std::string& where) {
  return std::strtoull(where.c_str() + where.find_last_of(": ") + 1, nullptr, 10);
}

}  // namespace troupe::data
