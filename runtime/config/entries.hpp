// What keys with named entries share, `NAME: {key: value, ...}` in one line of YAML: eval.sets and
// reward.list. Pure.
#pragma once

#include "runtime/config/table.hpp"
#include "runtime/core/result.hpp"

#include <yaml-cpp/yaml.h>

#include <string>

namespace troupe::config {

// The name becomes a part of figures' names and of roles' names: letters, digits, dots, dashes and
// underscores, at most kEvalSetName_bytes_max.
bool good_entry_name(const std::string& name);

// The value of one key of an entry. Errors (kConfig): neither plain nor a list of plain values.
// `of`: the key whose entry it is, in messages.
core::Result<Setting> entry_setting(const std::string& key,
                                    const YAML::Node& value,
                                    const std::string& of);

// "'TEXT' is not valid YAML: why", for the text of an entry.
core::Failure not_yaml(const std::string& text, const YAML::Exception& error);

}  // namespace troupe::config
