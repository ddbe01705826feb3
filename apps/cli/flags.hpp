// The plain flags of a subcommand: `--max-new-tokens 32`, `--json`, repeated `--stop X`. A command
// lists its flags with the variables they fill; help, parsing and messages come from that list. The
// one source that includes CLI11 is flags.cpp.
#pragma once

#include "apps/cli/words.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe::app {

struct Flag {
  std::string_view name;  // "--max-new-tokens"
  std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::string>*> target;
  std::string_view help;
  bool required = false;
  double min = -1e18, max = 1e18;  // of numbers
};

enum class FlagsOutcome { kRun, kHelpShown };

// Fills the targets from `words`. `title` heads the help page: "troupe generate: ...". A bool may
// stand alone or be followed by true, false, yes, no, on, off, 1 or 0. Error kConfig, listing all
// mistakes: unknown flags (with the nearest), missing or malformed value, out of range.
core::Result<FlagsOutcome> parse_flags(std::string_view title,
                                       const std::vector<Flag>& flags,
                                       Words words);

}  // namespace troupe::app
