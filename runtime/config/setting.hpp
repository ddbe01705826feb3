// One `key = value` as it was written in a file or on a command line, not yet checked. A value
// type.
#pragma once

#include <string>
#include <vector>

namespace troupe::config {

struct Setting {
  std::string name;
  std::vector<std::string> values;  // one for a scalar, the items of a list
  bool is_list = false;             // written as a list
  std::string where;                // "demo.yaml:4" or "the command line"
};

}  // namespace troupe::config
