// Types with which other rooms tell the configuration which words a key accepts (ChoiceTable) and
// which combinations of settings they refuse (Refusal). Plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troupe::core {

// One accepted word. `alias`, which may be empty, is accepted for `name`. All three must be string
// literals.
struct Choice {
  std::string_view name, alias;
  std::string_view help;  // one line
};

// The words of one key, in the order of the help pages.
struct ChoiceTable {
  std::string_view key;
  std::vector<Choice> choices;
};

// Why a combination of settings makes no sense, with the key that should change.
struct Refusal {
  std::string key;
  std::string why;
  std::string advice = {};  // what to do
};

}  // namespace troupe::core
