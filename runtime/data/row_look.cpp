#include "runtime/data/row_look.hpp"

#include "runtime/data/chat_rows.hpp"
#include "runtime/data/default_columns.hpp"
#include "runtime/data/row_format.hpp"
#include "runtime/data/row_kinds.hpp"
#include "runtime/data/table_list.hpp"
#include "runtime/data/table_reader.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace troupe::data {
namespace {

// Columns that public datasets have under other names than the readers look for, likeliest first.
constexpr std::string_view kOtherPrompts[] = {"question", "query", "problem", "instruction",
                                              "text"};
constexpr std::string_view kOtherAnswers[] = {"answer", "solution", "target"};
constexpr std::string_view kOtherTexts[] = {"content", "document"};
constexpr std::string_view kOtherBetter[] = {"preferred", "better"};
constexpr std::string_view kOtherWorse[] = {"dispreferred", "worse"};
constexpr std::string_view kPromptLabels[] = {"label",        "answer", "solution",
                                              "ground_truth", "target", "expected"};
constexpr std::string_view kRatings[] = {"label", "desirable", "rating"};

std::string first_named(const Json& row, std::span<const std::string_view> names) {
  const auto found = std::ranges::find_if(names, [&](auto name) { return row.contains(name); });
  return found == names.end() ? std::string() : std::string(*found);
}

std::string quoted_name(const std::string& name) {
  return "'" + name + "'";
}

// Looks at the first row of a kind of data.
class FirstRow {
 public:
  FirstRow(const Json& row, RowNeed need, const NamedColumns& named)
      : row_(row), need_(need), named_(named) {}

  core::Result<RowLook> look() {
    if (need_ == RowNeed::kText) return text();
    if (need_ == RowNeed::kSteps) return steps();
    const bool pair = need_ == RowNeed::kPair;
    const std::string key = named_.prompt.empty() && !pair ? "input" : named_.prompt;
    const RowFormat format = format_of(row_, key);
    if (format != RowFormat::kColumns) return known(format);
    if (pair) return answers_of_pair();
    return columns();
  }

 private:
  // `own`: the column that the readers find; empty: none. `named`: what a configuration says.
  std::string choose(const std::string& named,
                     const std::string& own,
                     std::span<const std::string_view> others,
                     std::string& to_name) const {
    if (!named.empty()) return named;
    if (row_.contains(own)) return own;
    to_name = first_named(row_, others);
    return to_name;
  }

  core::Failure nothing(std::string_view what, std::string_view flags) const {
    return bad_row("no column of " + std::string(what) +
                       " is known by its name (there is: " + columns_of(row_) + ")",
                   "name it: " + std::string(flags));
  }

  core::Result<RowLook> known(RowFormat format) {
    look_.chat = true;
    const bool sharegpt = format == RowFormat::kShareGpt;
    look_.words = sharegpt ? "ShareGPT rows" : "Alpaca rows";
    if (need_ == RowNeed::kRated) TROUPE_TRY(rating());
    if (need_ == RowNeed::kPrompt) label();
    return std::move(look_);
  }

  core::Result<RowLook> columns() {
    if (need_ == RowNeed::kAnswer && is_text_alone()) return text();
    const std::string named = named_.prompt.empty() ? "input" : named_.prompt;
    const std::string prompt =
        choose(named_.prompt, prompt_column(row_, named), kOtherPrompts, look_.to_name.prompt);
    if (!row_.contains(prompt)) return nothing("the prompt", "--data.input_key COLUMN");
    kind_of_prompt(row_[prompt]);
    look_.words = (look_.chat ? "messages in " : "a prompt in ") + quoted_name(prompt);
    if (need_ == RowNeed::kPrompt) {
      label();
      return std::move(look_);
    }
    const std::string output = named_.answer.empty() ? "output" : named_.answer;
    const std::string own = answer_column(row_, output, look_.chat);
    // A list of messages holds its answer itself.
    const bool whole = look_.chat && !row_.contains(own);
    if (!whole) TROUPE_TRY(answer(own, prompt));
    if (need_ == RowNeed::kRated) TROUPE_TRY(rating());
    return std::move(look_);
  }

  // Rows of texts, which sft learns from as pretrain does.
  bool is_text_alone() const {
    const bool others = row_.contains("input") || row_.contains("prompt") ||
                        row_.contains("messages") || !named_.prompt.empty();
    return !others && row_.contains("text") && row_["text"].is_string();
  }

  core::Result<void> answer(const std::string& own, const std::string& prompt) {
    const std::string found = choose(named_.answer, own, kOtherAnswers, look_.to_name.answer);
    if (!row_.contains(found) || found == prompt)
      return nothing("the answer", "--data.output_key COLUMN");
    look_.words += " and its answer in " + quoted_name(found);
    look_.chat = look_.chat || row_[found].is_array();
    return {};
  }

  core::Result<void> rating() {
    const std::string found = choose(named_.label, "label", kRatings, look_.to_name.label);
    if (!row_.contains(found))
      return nothing("the rating, true or false,", "--data.label_key COLUMN");
    look_.words += ", rated in " + quoted_name(found);
    return {};
  }

  core::Result<RowLook> text() {
    const std::string named = named_.prompt.empty() ? "input" : named_.prompt;
    const std::string found =
        choose(named_.prompt, text_column(row_, named), kOtherTexts, look_.to_name.prompt);
    if (!row_.contains(found) || !row_[found].is_string())
      return nothing("a text", "--data.input_key COLUMN");
    look_.words = "texts in " + quoted_name(found);
    return std::move(look_);
  }

  core::Result<RowLook> answers_of_pair() {
    const std::string better = choose(named_.chosen, "chosen", kOtherBetter, look_.to_name.chosen);
    const std::string worse =
        choose(named_.rejected, "rejected", kOtherWorse, look_.to_name.rejected);
    if (!row_.contains(better)) return nothing("the better answer", "--data.chosen_key COLUMN");
    if (!row_.contains(worse)) return nothing("the worse answer", "--data.rejected_key COLUMN");
    constexpr std::string_view kPrompts[] = {"input", "question", "query", "instruction"};
    const std::string prompt = choose(named_.prompt, "prompt", kPrompts, look_.to_name.prompt);
    look_.chat = row_[better].is_array();
    look_.words = "pairs of answers in " + quoted_name(better) + " and " + quoted_name(worse);
    if (!row_.contains(prompt)) return std::move(look_);
    kind_of_prompt(row_[prompt]);
    look_.chat = look_.chat || row_[better].is_array();
    look_.words += " to a prompt in " + quoted_name(prompt);
    return std::move(look_);
  }

  core::Result<RowLook> steps() {
    if (!row_.contains("input") && row_.contains("completions") && named_.prompt.empty()) {
      look_.words = "a prompt, a list of steps and one of labels";
      return std::move(look_);
    }
    const std::string found = choose(named_.prompt, "input", kOtherPrompts, look_.to_name.prompt);
    if (!row_.contains(found)) return nothing("a text with steps", "--data.input_key COLUMN");
    const std::string labels = choose(named_.label, "label", {}, look_.to_name.label);
    if (!row_.contains(labels)) return nothing("the labels", "--data.label_key COLUMN");
    look_.chat = row_[found].is_array();
    look_.words =
        "texts with steps in " + quoted_name(found) + ", labels in " + quoted_name(labels);
    return std::move(look_);
  }

  void kind_of_prompt(const Json& prompt) {
    look_.chat = prompt.is_array();
    look_.text_prompt = prompt.is_string();
  }

  void label() {
    look_.label = named_.label.empty() ? first_named(row_, kPromptLabels) : named_.label;
    if (!row_.contains(look_.label)) look_.label.clear();
    if (!look_.label.empty())
      look_.words += " with the expected answer in " + quoted_name(look_.label);
  }

  const Json& row_;
  const RowNeed need_;
  const NamedColumns& named_;
  RowLook look_;
};

core::Result<RowLook> look_at_first(const Json& row, RowNeed need, const NamedColumns& named) {
  MessageColumns lists;
  if (need != RowNeed::kText) {
    lists = {{"messages", "conversations", "prompt", named.prompt},
             {"chosen", "rejected", "completion", named.answer, named.chosen, named.rejected}};
  }
  TROUPE_TRY_ASSIGN(listed, with_listed_messages(row, lists, parse::Numbers::kAsWritten));
  const Json& read = listed ? *listed : row;
  auto look = FirstRow(read, need, named).look();
  if (!look) return core::fail(about_kind(look.error(), read, need));
  return look;
}

void take_row(const Json& row, RowLook& look) {
  ++look.rows;
  if (look.firsts.size() < RowLook::kFirsts) look.firsts.push_back(row);
  const auto label = look.label.empty() ? row.end() : row.find(look.label);
  if (label == row.end() || look.labels.size() == RowLook::kLabels) return;
  look.labels.push_back(label->is_string() ? label->get<std::string>()
                                           : parse::written_text(*label));
}

}  // namespace

core::Result<RowLook> look_at_rows(const std::string& files,
                                   std::string_view key,
                                   RowNeed need,
                                   const NamedColumns& named) {
  RowLook look;
  bool more = false;
  const TakeRow take = [&](const Json& row, const std::string&) -> core::Result<bool> {
    if (look.rows == RowLook::kRows) return more = true, false;
    if (look.rows == 0) TROUPE_TRY_SET(look, look_at_first(row, need, named));
    take_row(row, look);
    return true;
  };
  TROUPE_TRY_ASSIGN(all, files_of_sets(files));
  for (const std::string& file : all) {
    if (more) break;
    TROUPE_TRY(read_table(file, key, parse::Numbers::kAsWritten, take));
  }
  if (look.rows == 0) return bad_row("dataset " + files + ": holds no rows", "choose another");
  look.all = !more;
  return look;
}

}  // namespace troupe::data
