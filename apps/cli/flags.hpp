// Parses the flags of a subcommand: `--max-new-tokens 32`, `--json`, repeated `--stop X`. A command
// lists its flags with the variables they fill; help, parsing and messages follow from that list.
// Only flags.cpp includes CLI11.
#pragma once

#include "apps/cli/words.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe::cli {

struct Flag {
  std::string_view name;  // "--max-new-tokens"; several names with commas: "--model,model"
  std::variant<bool*,
               std::int64_t*,
               double*,
               std::string*,
               std::vector<std::string>*,
               std::vector<std::int64_t>*>
      target;
  std::string_view help;
  bool required = false;
  double min = -1e18, max = 1e18;  // of numbers
  int words = 1;                   // of a list of words: how many each time
};

enum class FlagsOutcome { kRun, kHelpShown };

// A flag as completion of a command line needs it.
struct FlagName {
  std::string name;  // "--out"
  bool takes_value = false;
};

// While one lives, parse_flags on this thread tells it the flags of a command, and returns
// kHelpShown in place of all else, so that a command that is called shows what flags it has and
// does nothing. One at a time.
class FlagCollector {
 public:
  FlagCollector();
  ~FlagCollector();
  FlagCollector(const FlagCollector&) = delete;
  FlagCollector& operator=(const FlagCollector&) = delete;

  const std::vector<FlagName>& names() const { return names_; }
  void take(const std::vector<Flag>& flags);

 private:
  std::vector<FlagName> names_;
};

// All names of flags.
std::vector<FlagName> flag_names(const std::vector<Flag>& flags);

// The words of these flags and their values go to `own`, all others (keys of a configuration,
// files) to `rest`.
struct PartedWords {
  std::vector<std::string> own, rest;
};
PartedWords part_words(Words words, const std::vector<Flag>& flags);

// Fills the targets from `words`. A list of words is a flag that may be repeated; a list of numbers
// has commas between them. `title` heads the help page: "troupe generate: ...". A bool may
// stand alone or be followed by true, false, yes, no, on, off, 1 or 0. Error kConfig, with all
// mistakes found: unknown flags (and the nearest known one), missing or malformed values, and
// numbers out of range. `named`: gets the words before, between and after the flags, but not those
// after a list of words, which takes all up to the next flag; null: each is a mistake.
Result<FlagsOutcome> parse_flags(std::string_view title,
                                 const std::vector<Flag>& flags,
                                 Words words,
                                 std::vector<std::string>* named = nullptr);

}  // namespace troupe::cli
