#include "runtime/learn/supervised/answer_groups.hpp"

#include "runtime/learn/supervised/picked.hpp"
#include "runtime/learn/supervised/row_checks.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace troupe::learn {
namespace {

using Tokens = std::span<const std::int32_t>;

struct Before {
  bool operator()(Tokens a, Tokens b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  }
};

template <class Value>
using ByTokens = std::map<Tokens, Value, Before>;

// The place of `answer` in the group, which takes it if it is not there yet.
std::int64_t place_in(model::SampleGroup& group, ByTokens<std::int64_t>& known, Tokens answer) {
  const auto [entry, fresh] = known.try_emplace(answer, std::ssize(group.responses));
  if (fresh) group.responses.push_back(answer);
  return entry->second;
}

// A unit that more rows of its prompt may join.
struct OpenUnit {
  std::size_t place = 0;  // among the units
  std::int64_t cost = 0;  // of the prompt and the answers
  std::set<Tokens, Before> answers = {};

  // What the row's answers add to the cost.
  std::int64_t added(const Method& method, const data::SupervisedRow& row) const {
    model::SampleGroup fresh;
    for (const Tokens answer : {Tokens(row.answer), Tokens(row.rejected)}) {
      if (!answer.empty() && !answers.contains(answer)) fresh.responses.push_back(answer);
    }
    return model::rows_of(fresh, group_rows(method));
  }
  void add(const Method& method, const data::SupervisedRow& row) {
    cost += added(method, row);
    answers.insert(row.answer);
    if (!row.rejected.empty()) answers.insert(row.rejected);
  }
};

}  // namespace

AnswerGroups group_answers(std::span<const data::SupervisedRow> rows) {
  AnswerGroups out;
  ByTokens<std::size_t> group_of;
  std::vector<ByTokens<std::int64_t>> answers;  // of each group
  std::vector<std::size_t> own;                 // the group of each row
  for (const data::SupervisedRow& row : rows) {
    const auto [entry, fresh] = group_of.try_emplace(row.prompt, out.groups.size());
    if (fresh) {
      out.groups.push_back({row.prompt, {}});
      answers.emplace_back();
    }
    own.push_back(entry->second);
    model::SampleGroup& group = out.groups[own.back()];
    out.first.push_back(place_in(group, answers[own.back()], row.answer));
    if (!row.rejected.empty())
      out.second.push_back(place_in(group, answers[own.back()], row.rejected));
  }
  // So far places count from the first response of their group.
  std::vector<std::int64_t> begin;
  for (const model::SampleGroup& group : out.groups) {
    begin.push_back(out.answers);
    out.answers += std::ssize(group.responses);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out.first[i] += begin[own[i]];
    if (!out.second.empty()) out.second[i] += begin[own[i]];
  }
  return out;
}

model::GroupRows group_rows(const Method& method) {
  return method.scores ? model::GroupRows::kLast : model::GroupRows::kPredicting;
}

std::int64_t rows_cost(const Method& method, std::span<const data::SupervisedRow> rows) {
  std::int64_t sum = 0;
  if (method.sequences() || method.steps()) {
    for (const data::SupervisedRow& row : rows)
      sum += row_cost(method, row);
    return sum;
  }
  for (const model::SampleGroup& group : group_answers(rows).groups)
    sum += model::rows_of(group, group_rows(method));
  return sum;
}

std::vector<std::vector<std::size_t>> units_of(const Method& method,
                                               std::span<const data::SupervisedRow> rows,
                                               std::span<const std::size_t> chosen,
                                               std::int64_t cost_max,
                                               std::int64_t units_min) {
  std::vector<std::vector<std::size_t>> units;
  if (!method.sequences() && !method.steps()) {
    ByTokens<OpenUnit> open;  // the last unit of each prompt
    for (const std::size_t row : chosen) {
      const auto [entry, fresh] = open.try_emplace(rows[row].prompt);
      OpenUnit& unit = entry->second;
      if (fresh || unit.cost + unit.added(method, rows[row]) > cost_max) {
        unit = {units.size(), std::ssize(rows[row].prompt)};
        units.emplace_back();
      }
      unit.add(method, rows[row]);
      units[unit.place].push_back(row);
    }
    if (std::ssize(units) >= units_min) return units;
    units.clear();
  }
  for (const std::size_t row : chosen)
    units.push_back({row});
  return units;
}

}  // namespace troupe::learn
