// The dotted flags of a command line: `--a.b.c v`, `--a.b.c=v` and `a.b.c=v`. Which flags exist and
// how many values each takes comes from the configuration table.
#pragma once

#include "runtime/config/config_set.hpp"
#include "runtime/core/error_list.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::config {

struct ConfigArguments {
  std::vector<std::string> files;  // words that are neither flag nor key=value, in order
  std::vector<ConfigText> settings;
  core::ErrorList wrong;  // kConfig: unknown flags, flags without their value
};

// A bool flag may stand alone. A list of numbers takes its count of words, or one word with commas;
// a list of texts takes one word each time the flag is given. What follows an unknown flag up to
// the next one is taken for its value. All that is wrong is told, and the rest is read.
ConfigArguments parse_config_arguments(std::span<const std::string> words);

// Resolves \n, \t, \r and \\ in a flag's value; other backslashes stay.
std::string unescape_flag(std::string_view text);

}  // namespace troupe::config
