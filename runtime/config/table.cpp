#include "runtime/config/table.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/core/split.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

namespace troupe::config {
namespace {

constexpr Range between(double low, double high) {
  return {low, high};
}
constexpr Range above(double low, double high) {
  return {low, high, true};
}
constexpr Range at_least(double low) {
  return {.min = low};
}
std::vector<core::Choice> words(std::span<const std::string_view> names) {
  std::vector<core::Choice> out;
  for (const std::string_view name : names)
    out.push_back({name, {}, {}});
  return out;
}
std::vector<core::Choice> words(std::initializer_list<std::string_view> names) {
  return words(std::span(names.begin(), names.size()));
}

template <class Choice>
constexpr std::span<const std::string_view> kWordsOf = kWords<Choice>;
template <>
constexpr std::span<const std::string_view> kWordsOf<Methods> = kMethodNames;

template <class Choice>
std::size_t number_of(Choice choice) {
  return static_cast<std::size_t>(choice);
}
std::size_t number_of(Methods method) {
  return static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(method)));
}
void take(auto& choice, std::size_t number) {
  choice = static_cast<std::remove_reference_t<decltype(choice)>>(number);
}
void take(Methods& method, std::size_t number) {
  method = static_cast<Methods>(1U << number);
}

// `at` is a lambda without captures that returns the member.
template <class T, class At>
Field field_of(At at) {
  if constexpr (std::is_enum_v<T>) {
    return ChoiceAccess{kWordsOf<T>, [](TrainConfig& c) { return number_of(At{}(c)); },
                        [](TrainConfig& c, std::size_t number) { take(At{}(c), number); }};
  } else {
    return Access<T>{at};
  }
}

// What a row takes over from its section.
struct Place {
  std::string path;  // "actor.adam."
  Methods readers;
  std::string_view title;
};

void add(std::vector<Row>& rows,
         const Place& place,
         std::string_view name,
         std::string_view help,
         Field field,
         Facts facts) {
  Row row{std::move(facts), place.path + std::string(name), place.title, help, field};
  if (row.only == kNoMethod) row.only = place.readers;
  if (const auto* choice = std::get_if<ChoiceAccess>(&field)) row.words = words(choice->words);
  rows.push_back(std::move(row));
}

// The macros turn each row of keys.def into a call of add(). Sections nest; `In` is the current
// one.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#define OPEN(name, ...)                                                            \
  {                                                                                \
    struct Section {                                                               \
      static auto& at(TrainConfig& c) { return In::at(c).name; }                   \
      static Place place() { return {In::place().path + #name ".", __VA_ARGS__}; } \
    };                                                                             \
    using In = Section;
#define SECTION(name, readers, title) OPEN(name, readers, title)
#define GROUP(name) OPEN(name, In::place().readers, In::place().title)
#define END(name) }
#define KEY_AT(place, type, name, help, ...) \
  add(rows, place, #name, help,              \
      field_of<type>([](TrainConfig& c) -> type& { return In::at(c).name; }), Facts{__VA_ARGS__});
#define KEY(type, name, value, ...) KEY_AT(In::place(), type, name, __VA_ARGS__)
#define TOP_KEY(type, name, value, title, ...) \
  KEY_AT((Place{{}, kAllMethods, title}), type, name, __VA_ARGS__)

std::vector<Row> make_rows() {
  struct In {
    static TrainConfig& at(TrainConfig& c) { return c; }
    static Place place() { return {}; }
  };
  std::vector<Row> rows;
#include "runtime/config/keys.def"
  return rows;
}
#pragma GCC diagnostic pop
#undef OPEN
#undef KEY_AT

}  // namespace

Table::Table(HandedTables handed) : rows_(make_rows()), rules_(std::move(handed.rules)) {
  for (core::ChoiceTable& table : handed.choices) {
    const auto* row = find(table.key);
    TROUPE_CHECK(row != nullptr, "choices are handed for keys that exist");
    rows_[static_cast<std::size_t>(row - rows_.data())].words = std::move(table.choices);
  }
}

const Row* Table::find(std::string_view name) const {
  for (const Row& row : rows_) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const Row* Table::find_any(std::string_view name) const {
  if (const Row* row = find(name)) return row;
  for (const Row& row : rows_) {
    if (!name.empty() && std::ranges::count(core::split(row.aka, " "), name) > 0) return &row;
  }
  return nullptr;
}

const Table& keys() {
  static const Table table;
  return table;
}

Methods method_named(std::string_view name) {
  return methods_where([name](const MethodRow& row) { return row.name == name; });
}

std::string method_names(Methods methods) {
  std::string text;
  for (const MethodRow& row : kMethodRows) {
    if ((methods & row.bit) == 0) continue;
    if (!text.empty()) text += ", ";
    text += row.name;
  }
  return text;
}

const TrainConfig& default_config() {
  static const TrainConfig config;
  return config;
}

}  // namespace troupe::config
