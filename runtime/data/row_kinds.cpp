#include "runtime/data/row_kinds.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>

namespace troupe::data {
namespace {

using config::MethodRows;

struct Kind {
  MethodRows rows;
  std::string_view what;     // "rows of ..."
  std::string_view columns;  // that such a row has
};
constexpr Kind kKinds[] = {
    {MethodRows::kPrompt, "prompts", "a prompt (`input`, `prompt` or `messages`)"},
    {MethodRows::kAnswer, "prompts with an answer",
     "`input` and `output`, `prompt` and `completion`, or `messages`"},
    {MethodRows::kText, "whole texts", "`input` or `text`"},
    {MethodRows::kPair, "pairs of answers", "`chosen` and `rejected`"},
    {MethodRows::kRated, "rated answers",
     "a prompt, an answer and a `label` that is true or false"},
    {MethodRows::kSteps, "labelled steps",
     "`input` with placeholders and `label`, or `prompt`, `completions` and `labels`"},
};

const Kind& kind_of(MethodRows rows) {
  return *std::ranges::find(kKinds, rows, &Kind::rows);
}

bool has_any(const Json& row, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* name) { return row.contains(name); });
}

// What a row is beyond doubt; nothing where its columns leave that open.
std::optional<MethodRows> kind_of_row(const Json& row) {
  if (row.contains("chosen") && row.contains("rejected")) return MethodRows::kPair;
  if (row.contains("completions") && row.contains("labels")) return MethodRows::kSteps;
  const bool dialogue = has_any(row, {"messages", "conversations"});
  const bool asks = dialogue || has_any(row, {"prompt", "input", "instruction"});
  const bool answers = has_any(row, {"completion", "output", "response"});
  const auto label = row.find("label");
  if (asks && answers && label != row.end() && label->is_boolean()) return MethodRows::kRated;
  if (dialogue || (asks && answers)) return MethodRows::kAnswer;
  if (row.contains("text") && !asks && !answers) return MethodRows::kText;
  if (row.contains("prompt") && row.size() == 1) return MethodRows::kPrompt;
  return std::nullopt;
}

// Whether a method that wants rows of one kind reads this one, too.
bool reads_too(MethodRows wanted, MethodRows found, const Json& row) {
  if (wanted == MethodRows::kPrompt)
    return has_any(row, {"prompt", "input", "instruction", "messages", "conversations"});
  return wanted == MethodRows::kAnswer && found == MethodRows::kRated;
}

}  // namespace

core::Error about_kind(const core::Error& error, const Json& row, MethodRows wanted) {
  if (error.code != core::ErrorCode::kData || !error.message.starts_with("no column")) return error;
  const auto found = kind_of_row(row);
  if (!found || *found == wanted || reads_too(wanted, *found, row)) return error;
  std::string methods;
  for (const config::MethodRow& method : config::kMethodRows) {
    if (method.rows == *found) methods += (methods.empty() ? "" : ", ") + std::string(method.name);
  }
  return error.advising("read are " + std::string(kind_of(wanted).what) + " (" +
                        std::string(kind_of(wanted).columns) + "), and this row (" +
                        columns_of(row) + ") is one of " + std::string(kind_of(*found).what) +
                        ", which `troupe train` reads with " + methods);
}

}  // namespace troupe::data
