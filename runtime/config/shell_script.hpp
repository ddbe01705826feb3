// Reads the commands of a shell script as far as published training scripts need it: quotes,
// backslashes, comments, here-documents, variables and arrays that the script sets, defaults
// (${X:-1}), sums ($((2 * X))). Runs nothing. Pure.
#pragma once

#include "runtime/core/result.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::config {

struct ShellWord {
  std::string text;
  int line = 0;         // of the word's beginning, from 1
  std::string unknown;  // what in it only a shell knows, "$(nproc)", "$2"; empty: nothing
};

// The words up to the end of a line, or to ; & | ( ) outside quotes.
using ShellCommand = std::vector<ShellWord>;

// The value of an environment variable.
using Environment = std::function<std::optional<std::string>(std::string_view name)>;

// The commands of `text` in their order, also those of here-documents. Assignments are no commands:
// they hold for what follows them, unless they stand below an `if` or a loop, where the value is
// unknown. Variables that the script does not set are `environment`'s. Redirections are left out.
// Errors (kConfig), with `where` and the line: a quote or a bracket without an end, a text that is
// too large (kConfigFile_bytes_max) or holds a zero byte.
core::Result<std::vector<ShellCommand>> read_script(std::string_view text,
                                                    std::string_view where,
                                                    const Environment& environment);

}  // namespace troupe::config
