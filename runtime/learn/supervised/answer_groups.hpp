// Rows with the same prompt share its computation, and equal answers to it are computed once: of
// four pairs of one better with four worse answers, the prompt and five answers. The values and
// their gradients are those of the rows alone. Pure functions; equality is that of the tokens.
#pragma once

#include "runtime/data/supervised_dataset.hpp"
#include "runtime/learn/supervised/methods.hpp"
#include "runtime/model/group_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::learn {

// The answers of a micro-batch's rows: a group for each prompt, in the order in which prompts, and
// the answers to each, first occur.
struct AnswerGroups {
  std::vector<model::SampleGroup> groups;
  // For each row, the places of its first and its second answer among the responses of all groups.
  std::vector<std::int64_t> first, second;  // `second` is empty where rows have one answer
  std::int64_t answers = 0;                 // responses of all groups
};

AnswerGroups group_answers(std::span<const data::SupervisedRow> rows);

// Scores are read at an answer's last token, log-probs wherever a token of it is predicted.
model::GroupRows group_rows(const Method& method);

// Number of tokens of the data rows that go through the model when they are computed together.
std::int64_t rows_cost(const Method& method, std::span<const data::SupervisedRow> rows);

// Groups the rows `chosen` of `rows` into units with equal prompts, in order of their first
// row. A unit holds at most `cost_max` tokens (rows_cost), but at least one row. Sequences are
// units of their own, and so are all rows where there would be fewer than `units_min` units.
std::vector<std::vector<std::size_t>> units_of(const Method& method,
                                               std::span<const data::SupervisedRow> rows,
                                               std::span<const std::size_t> chosen,
                                               std::int64_t cost_max,
                                               std::int64_t units_min);

}  // namespace troupe::learn
