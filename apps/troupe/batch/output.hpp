// Output of the batch commands: rows of .jsonl files, and evaluation figures as JSON or as a table.
#pragma once

#include "apps/session/eval_figures.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace troupe::app {

using Json = nlohmann::ordered_json;

// The row as one line of JSON with its newline, its numbers as they were written; bytes that are
// not UTF-8 become U+FFFD.
inline std::string json_line(const Json& row) {
  return parse::written_text(row) + "\n";
}

// The name of the set that a row belongs to: its column `key`. Empty without that column.
inline std::string source_of(const Json& columns, const std::string& key) {
  const auto found = columns.find(key);
  if (found == columns.end()) return {};
  return found->is_string() ? found->get<std::string>() : parse::written_text(*found);
}

// The set as {"problems": 40, "pass@1": {"mean": m, "low": l, "high": h}, ...}. `counted`: the key
// of the set's size, here "problems".
inline Json figures_json(const session::EvalSet& set, const char* counted) {
  Json out = {{counted, set.problems}};
  for (const session::EvalFigure& figure : set.figures) {
    out[figure.name] = {
        {"mean", figure.value.mean}, {"low", figure.value.low}, {"high", figure.value.high}};
  }
  return out;
}

// Prints each set with its size and a line for each figure. `data` names the set of all rows, which
// has no name; `counted` says what is counted, such as "pairs".
inline void print_figures(const std::vector<session::EvalSet>& sets,
                          const std::string& data,
                          const std::string& counted) {
  for (const session::EvalSet& set : sets) {
    std::printf("%s, %lu %s   (95 %% bootstrap interval)\n",
                set.name.empty() ? data.c_str() : set.name.c_str(), set.problems, counted.c_str());
    for (const auto& [name, value] : set.figures) {
      std::printf("  %-16s %8.4f   [%.4f, %.4f]\n", name.c_str(), value.mean, value.low,
                  value.high);
    }
  }
}

}  // namespace troupe::app
