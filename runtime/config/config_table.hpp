// The one table of configuration keys: name, type, default, range, unit, help and the peer's name.
// Flags, YAML keys, help pages, docs/configuration.md and resolved_config.yaml are made from it.
// Rows are bound to members of TrainConfig, so that a name cannot drift from its field and the
// default is the member's initialiser. Immutable; safe on any thread.
#pragma once

#include "runtime/config/train_config.hpp"
#include "runtime/config/train_method.hpp"

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe::config {

// One accepted word of a choice; `alias` (may be empty) is read as `name`.
struct ConfigChoice {
  std::string_view name;
  std::string_view alias;
};

// The member of a TrainConfig that a row fills.
using ConfigField = std::variant<bool& (*)(TrainConfig&),
                                 std::int64_t& (*)(TrainConfig&),
                                 double& (*)(TrainConfig&),
                                 std::string& (*)(TrainConfig&),
                                 std::vector<double>& (*)(TrainConfig&),
                                 std::vector<std::string>& (*)(TrainConfig&)>;

struct ConfigRow {
  std::string_view name;
  ConfigField field;
  std::string_view help_text;
  std::string_view unit_text;
  std::string_view peer_text;  // OpenRLHF's flag where it is another name or meaning
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;             // the minimum itself is refused
  std::vector<ConfigChoice> choices;  // non-empty: one of these words
  std::size_t list_size = 0;          // of a list of numbers; 0 = any
  bool required = false;
  Methods methods = kAllMethods;  // those that read the key
  bool escapes = false;           // \n \t \\ in a flag's value are one character each

  // How the rows of config_rows.cpp read.
  ConfigRow help(std::string_view text) &&;
  ConfigRow unit(std::string_view text) &&;
  ConfigRow peer(std::string_view text) &&;
  ConfigRow range(double low, double high) &&;
  ConfigRow at_least(double low) &&;
  ConfigRow above(double low, double high) &&;
  ConfigRow one_of(std::vector<ConfigChoice> words) &&;
  ConfigRow items(std::size_t count) &&;
  ConfigRow needed() &&;
  ConfigRow only(Methods readers) &&;
  ConfigRow with_escapes() &&;

  bool is_bool() const { return field.index() == 0; }
  bool is_number() const { return field.index() == 1 || field.index() == 2; }
  bool is_list() const { return field.index() >= 4; }
  // "int", "float", "bool", "text", "choice", "2 floats", "list of text".
  std::string type_name() const;
  // "1 to 10", "at least 0", "above 0", "ppo | decoupled"; empty when anything goes.
  std::string range_text() const;
  // The part of the name up to the first dot, or the whole name.
  std::string_view section() const;
};

// All rows, keys of one section adjacent, in the order of the help pages.
std::span<const ConfigRow> config_table();

// Null when there is no such key.
const ConfigRow* find_config_row(std::string_view name);

// The same, also by OpenRLHF's name where that means the same and takes the same values.
const ConfigRow* config_row_of(std::string_view name);

// The key that a misspelt name most likely means; empty when nothing is close.
std::string nearest_config_name(std::string_view name);

// For OpenRLHF's names, dotted and flat: a sentence with what to write here, or why there is no such
// key; else empty.
std::string renamed_config_key(std::string_view name);

// The value of a row as written in YAML: `1e-06`, `"text"`, `[0.9, 0.95]`, `true`.
std::string config_value_yaml(const TrainConfig& config, const ConfigRow& row);

}  // namespace troupe::config
