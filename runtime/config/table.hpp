// The table of configuration keys, generated from keys.def. Flags, YAML keys, help pages,
// docs/configuration.md and resolved_config.yaml come from it. Immutable; safe on any thread.
#pragma once

#include "runtime/config/choice_table.hpp"
#include "runtime/config/train_config.hpp"

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe::config {

// One `key = value` as written in a file or on a command line, not yet checked.
struct Setting {
  std::string name;
  std::vector<std::string> values;  // one for a scalar, the items of a list
  bool is_list = false;             // written as a list
  std::string where;                // "demo.yaml:4" or "the command line"
  std::string factor{};             // the value is one of several that are multiplied: its name
};

// How a row accesses its member of a TrainConfig.
template <class T>
using Access = T& (*)(TrainConfig&);

// How a row accesses a choice, by the index of its word.
struct ChoiceAccess {
  std::span<const std::string_view> words;
  std::size_t (*get)(TrainConfig&);
  void (*set)(TrainConfig&, std::size_t);
};

using Field = std::variant<Access<bool>,
                           Access<Int>,
                           Access<Float>,
                           Access<Text>,
                           Access<Device>,
                           ChoiceAccess,
                           Access<Floats>,
                           Access<Texts>,
                           Access<Devices>>;

struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above = false;  // the minimum itself is not allowed
};

// For some methods, a default that differs from the key's; written as in YAML.
struct MethodDefault {
  Methods methods;
  std::string_view value;
};

// What a row of keys.def may specify after type, name, default and help, in this order.
struct Facts {
  Range range{};  // of the number, or of each number in a list
  std::string_view unit{};
  std::size_t count = 0;              // items of a list; 0 = any number
  bool needed = false;                // has no default
  bool escapes = false;               // \n, \t, \r and \\ in a flag's value are resolved
  std::vector<core::Choice> words{};  // if not empty, the text or each list item is one of these
  Methods only = kNoMethod;           // methods that read the key, if not all of the section's
  std::vector<MethodDefault> defaults{};
  std::string_view peer{};  // OpenRLHF's flag if it differs in name or default; or "none"
  std::string_view aka{};   // names of other trainers with the same meaning, separated by spaces
  bool free = false;        // a resumed run may change it
  bool entries = false;     // in YAML the list may be a map: each entry is an item "{name: value}"
  // What a run did whose resolved configuration lacks the key, since it is older; written as in
  // YAML. Empty: the default.
  std::string_view older{};
  bool never = false;  // -1 is 0: others write it for "never" or "all"
};

struct Row : Facts {
  std::string name;
  std::string_view title;  // of the section
  std::string_view help;
  Field field;

  template <class T>
  bool is() const {
    return std::holds_alternative<Access<T>>(field);
  }
  bool is_list() const { return is<Floats>() || is<Texts>() || is<Devices>(); }
  bool is_read_by(Methods methods) const { return (only & methods) != 0; }
  // "int", "float", "bool", "text", "choice", "device", "2 floats", "list of text",
  // "devices".
  std::string type_name() const;
  // "1 to 10", "at least 0", "above 0", "ppo | decoupled"; empty if any value is allowed.
  std::string range_text() const;
  // The part of the name up to the first dot, or the whole name.
  std::string_view section() const;

  // The value, of a key of that type.
  template <class T>
  const T& get(const TrainConfig& config) const {
    return std::get<Access<T>>(field)(const_cast<TrainConfig&>(config));
  }
  // The value as written in YAML: `1e-06`, `"text"`, `[0.9, 0.95]`, `true`.
  std::string yaml(const TrainConfig& config) const;
  // Errors (kConfig): wrong type, out of range, no such word; each says where and what is expected.
  core::Result<void> set(TrainConfig& config, const Setting& setting) const;
};

class Table {
 public:
  // Choice keys without words in `handed` accept any word.
  explicit Table(HandedTables handed = {});

  // In the order of the help pages; keys of one section are adjacent.
  std::span<const Row> rows() const { return rows_; }
  std::span<const Rule> rules() const { return rules_; }

  // Null if there is no such key.
  const Row* find(std::string_view name) const;
  // Like `find`, but also finds other trainers' names with the same meaning and values (`aka`).
  const Row* find_any(std::string_view name) const;

 private:
  std::vector<Row> rows_;
  std::vector<Rule> rules_;
};

// The table without handed choices and rules.
const Table& keys();

// The value of a key, which exists and has that type.
template <class T>
const T& value_at(const TrainConfig& config, std::string_view key) {
  return keys().find(key)->get<T>(config);
}

// The key of these methods that a misspelt name most likely means; empty if none is near: of the
// same section and alike, or hardly a letter wrong.
std::string nearest_name(std::string_view name, Methods methods = kAllMethods);

// For another trainer's name (peer_names.def): a sentence that says what it is here, what to write
// instead, or why there is no such key. Empty for other names.
std::string answer_to_name(std::string_view name, Methods methods = kAllMethods);

// The error for a name that is not a key of these methods.
core::Error unknown_key(std::string_view name,
                        std::string_view where,
                        Methods methods = kAllMethods);

// The configuration with all defaults.
const TrainConfig& default_config();

}  // namespace troupe::config
