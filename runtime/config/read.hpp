// Reads YAML files (JSON is a subset) and dotted flags into settings, and settings into a Builder.
// The table of keys defines what values mean. A file may have kConfigFile_bytes_max bytes, 1000
// keys, and sections 8 deep.
#pragma once

#include "runtime/config/builder.hpp"
#include "runtime/core/error_list.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::config {

// Reads the arguments of `troupe train METHOD CONFIG.yaml... [--key v | key=v]...` and checks each
// key. Reports all errors in flags and files together. Call `finish` on the result to check the
// rules between keys. If `method` is kNoMethod, the key `method` decides; without it, ppo. `table`
// must outlive the result.
core::Result<Builder> read(const Table& table,
                           std::span<const std::string> words,
                           Methods method = kNoMethod);

// The settings in a YAML text; `where` is the file's name in messages. Errors (kConfig): too large,
// not YAML, unknown keys, a repeated key. All are reported, each with file and line.
core::Result<std::vector<Setting>> read_yaml(const std::string& text, const std::string& where);

// The text of a configuration file, cut a byte behind kConfigFile_bytes_max. Errors (kConfig): no
// such file, a folder, a file that cannot be read.
core::Result<std::string> config_file_text(const std::string& file);

// The contents of a command line, or of a file.
struct Arguments {
  std::vector<std::string> files;  // words that are neither flags nor key=value, in order
  std::vector<Setting> settings;
  std::vector<Setting> hints;      // settings that go before all others (peer_names.hpp)
  std::vector<std::string> notes;  // on names of other trainers that were taken
  core::ErrorList wrong;           // kConfig: unknown flags, flags without their value
};

// Reads `--a.b.c v`, `--a.b.c=v` and `a.b.c=v`. A bool flag needs no value. A list of numbers takes
// as many words as it has items, or one word with commas. A list of texts takes one word each time
// the flag is given, and commas separate its items unless the key resolves escapes. The words after
// an unknown flag, up to the next flag, setting or YAML file, are taken as its values. Names may be
// those of other trainers, as `methods` mean them. Collects all errors and reads the rest.
Arguments read_flags(const Table& table,
                     std::span<const std::string> words,
                     Methods methods = kAllMethods);

// The values of a key from the words behind its flag: items of a list are split at commas, escapes
// are resolved where the key has them.
std::vector<std::string> flag_values(const Row& row, std::vector<std::string> written);

// Resolves \n, \t, \r and \\ in a flag's value; keeps other backslashes.
std::string unescape_flag(std::string_view text);

}  // namespace troupe::config
