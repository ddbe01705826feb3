// Reading of YAML configuration files (JSON is a subset). Keys come out flat with file and line,
// their values as text: what they mean is the table's business. Bounds: kConfigFile_bytes_max,
// depth 8.
#pragma once

#include "runtime/config/config_set.hpp"
#include "runtime/core/result.hpp"

#include <span>
#include <string>
#include <vector>

namespace troupe::config {

// The pairs of a YAML text; `where` stands for the file's name in messages. Errors (kConfig): too
// large, not YAML, unknown keys, a key twice; each with file and line, all of them told.
core::Result<std::vector<ConfigText>> parse_config_text(const std::string& text,
                                                              const std::string& where);

// The configuration of `troupe train METHOD CONFIG.yaml... [--key v | key=v]...`, checked per key:
// everything that is wrong with flags and files is told at once. Call `finish` on the result for
// the rules between keys. `method` empty: the files say it.
core::Result<ConfigBuilder> read_configuration(std::span<const std::string> words,
                                                     std::string_view method = {});

}  // namespace troupe::config
