// A chosen row of a table of named choices: objectives, estimators, corrections and the like. Code
// reads a choice's properties and functions from its row instead of comparing names. A value type
// that stores the row's index, so it is also valid in libtroupe_learn.so, which has its own tables.
#pragma once

#include "runtime/core/check.hpp"
#include "runtime/core/choice.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

namespace troupe::learn {

// `Row` has name, alias and help; Row::all() returns its table.
template <class Row>
class Chosen {
 public:
  // By name or alias. The configuration admits only names of the table, so any other is a bug.
  template <std::convertible_to<std::string_view> Name>
  Chosen(const Name& name) : index_(index_of(name)) {}
  // A row of the table.
  Chosen(const Row& row) : index_(static_cast<std::size_t>(&row - Row::all().data())) {}

  const Row& operator*() const { return Row::all()[index_]; }
  const Row* operator->() const { return &Row::all()[index_]; }
  std::size_t index() const { return index_; }
  bool operator==(const Chosen&) const = default;

 private:
  static std::size_t index_of(std::string_view name) {
    const std::span<const Row> rows = Row::all();
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
      return row.name == name || (!name.empty() && row.alias == name);
    });
    TROUPE_CHECK(found != rows.end(), "a word that is in no row of its table");
    return static_cast<std::size_t>(found - rows.begin());
  }

  std::size_t index_;
};

// The names and aliases of a table, in the form that the configuration takes.
template <class Row>
core::ChoiceTable words_of(std::string_view key) {
  core::ChoiceTable table{key, {}};
  for (const Row& row : Row::all())
    table.choices.push_back({row.name, row.alias, row.help});
  return table;
}

// Returns the rows with `formula`, which needs LibTorch, set to null: for code without LibTorch.
template <class Row, std::size_t count>
consteval std::array<Row, count> facts_of(std::array<Row, count> rows) {
  for (Row& row : rows)
    row.formula = nullptr;
  return rows;
}

}  // namespace troupe::learn
