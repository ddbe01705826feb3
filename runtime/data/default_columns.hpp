// The columns in which commands look for a prompt, an answer or a text when the settings leave
// their names at the default: those of this project, then TRL's. A row that has the named column is
// read from it. A name that is none of a list is a wish, and nothing else is looked for. Pure
// functions.
#pragma once

#include "runtime/data/table_reader.hpp"

#include <string>
#include <string_view>

namespace troupe::data {

// In the order in which they are looked for.
inline constexpr std::string_view kPromptColumns[] = {"input", "prompt"};
inline constexpr std::string_view kAnswerColumns[] = {"output", "completion", "response"};
inline constexpr std::string_view kTextColumns[] = {"input", "text"};

// Whether a setting leaves it to the readers where a prompt is: it names none, or one of those that
// they look for.
bool is_default_prompt(std::string_view named);

// The column of the row that holds its prompt: `named`; else, if that is one of kPromptColumns,
// `messages` if that is a list, or the first of kPromptColumns that the row has. `named` itself if
// there is none.
std::string prompt_column(const Json& row, const std::string& named);

// The column of the answer. Beside a list of messages only `completion` is looked for, since such a
// list may hold the answer itself.
std::string answer_column(const Json& row, const std::string& named, bool beside_messages);

// The column of a text all of whose tokens are learned.
std::string text_column(const Json& row, const std::string& named);

}  // namespace troupe::data
