// The words that a configuration key accepts, and what a rule between keys refuses: how rooms tell
// the configuration about choices that are theirs. Plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troupe::core {

// One accepted word; `alias` (may be empty) is read as `name`. All three outlive the program's
// start: they are literals.
struct Choice {
  std::string_view name, alias;
  std::string_view help;  // one line
};

// The words of one key, in the order of help pages.
struct ChoiceTable {
  std::string_view key;
  std::vector<Choice> choices;
};

// Why a combination of settings makes no sense, at the key that should change.
struct Refusal {
  std::string key;
  std::string why;
};

}  // namespace troupe::core
