// Reads a YAML file of plain values and lists, without sections and without the keys of a run: a
// rubric, say. Bounds: those of a configuration file (read.hpp). Pure.
#pragma once

#include "runtime/config/table.hpp"

#include <string>
#include <vector>

namespace troupe::config {

// The pairs in the order of the text; `where` is the file's name in messages. Errors (kConfig) with
// file and line: too large, not YAML, a key that is given twice, a value that is neither plain nor
// a list of plain ones.
core::Result<std::vector<Setting>> read_flat_yaml(const std::string& text,
                                                  const std::string& where);

}  // namespace troupe::config
