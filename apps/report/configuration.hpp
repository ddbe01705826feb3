// The configuration of a run as resolved_config.yaml has it, key by key. Reads the form that
// config::resolved_yaml writes and knows no key, so that files of any version of the program can be
// shown and compared. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troupe::report {

struct ConfigLine {
  std::string key;     // dotted
  std::string value;   // as written
  std::string origin;  // the comment after it: where it was set; empty for a default
};

std::vector<ConfigLine> config_lines(std::string_view yaml);

// The value of a key, without the quotes of a text; empty if there is none.
std::string config_value(const std::vector<ConfigLine>& lines, std::string_view key);

}  // namespace troupe::report
