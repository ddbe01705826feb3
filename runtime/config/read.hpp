// Reads YAML files (JSON is a subset) and dotted flags into settings, and settings into a Builder.
// The table of keys says what values mean. Bounds: kConfigFile_bytes_max, sections 8 deep.
#pragma once

#include "runtime/config/builder.hpp"
#include "runtime/core/error_list.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::config {

// The configuration of `troupe train METHOD CONFIG.yaml... [--key v | key=v]...`, checked per key:
// everything that is wrong with flags and files is told at once. Call `finish` on the result for
// the rules between keys. `method` kNoMethod: the files say it. `table` outlives the result.
core::Result<Builder> read(const Table& table,
                           std::span<const std::string> words,
                           Methods method = kNoMethod);

// The pairs of a YAML text; `where` stands for the file's name in messages. Errors (kConfig): too
// large, not YAML, unknown keys, a key twice; each with file and line, all of them told.
core::Result<std::vector<Setting>> read_yaml(const std::string& text, const std::string& where);

// What a command line says.
struct Arguments {
  std::vector<std::string> files;  // words that are neither flag nor key=value, in order
  std::vector<Setting> settings;
  core::ErrorList wrong;  // kConfig: unknown flags, flags without their value
};

// `--a.b.c v`, `--a.b.c=v` and `a.b.c=v`. A bool flag may stand alone. A list of numbers takes its
// count of words, or one word with commas; a list of texts takes one word each time the flag is
// given. What follows an unknown flag up to the next one is taken for its value. All that is wrong
// is told, and the rest is read.
Arguments read_flags(const Table& table, std::span<const std::string> words);

// Resolves \n, \t, \r and \\ in a flag's value; other backslashes stay.
std::string unescape_flag(std::string_view text);

}  // namespace troupe::config
