// Reads a YAML or JSON file of another trainer. Pure.
#pragma once

#include "runtime/config/peer_file.hpp"

#include <string>
#include <vector>

namespace troupe::config {

// The settings in the order of the text, with sections in their names ("data.train_files"). A map
// whose name is that of a setting of `methods` is one setting with the value "{...}". Errors
// (kConfig) with file and line: too large, not YAML, several documents, no `key: value` pairs,
// nested too deeply, too many.
core::Result<std::vector<PeerSetting>> peer_yaml(const Table& table,
                                                 const std::string& text,
                                                 const std::string& where,
                                                 Methods methods);

}  // namespace troupe::config
