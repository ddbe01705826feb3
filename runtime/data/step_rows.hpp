// Tokenises a row of kSteps: a text with a placeholder behind each of its steps and a list of their
// labels, or a row that lists its steps. Internal to this room; pure functions.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/supervised_rows.hpp"

namespace troupe::data {

// The text is the column input_key (text, or the messages of a whole dialogue). A row that has
// `completions` in its place lists its steps: its text is `prompt` and the steps, each with a
// placeholder behind it, with the separator between two. Labels: texts, each one token; or numbers
// from 0 to 1 and booleans, the probability of the first of two reward tokens. Errors (kData) name
// the column: labels of another kind or number than the text's placeholders, a step that holds the
// placeholder itself.
core::Result<CodedRow> step_row(const Json& row,
                                const SupervisedColumns& columns,
                                const DialogueCoder& coder);

}  // namespace troupe::data
