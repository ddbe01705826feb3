// Reads a configuration of another trainer as its user has it: a shell script with its command line
// (TRL, verl, OpenRLHF), a YAML or JSON file (TRL, verl), words of Hydra (verl), or a Python script
// with its settings as literals (TRL). What the names mean is not asked here (peer_names.hpp).
#pragma once

#include "runtime/config/shell_script.hpp"
#include "runtime/config/table.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::config {

// One setting as it was written.
struct PeerSetting {
  Setting written;
  bool is_flag = false;  // commas separate items
  std::string unknown;   // what in its value only a shell knows; empty: nothing
  std::string note;      // what it is made of, where it was written in parts
};

// What stands as literals in a Python script: the calls that make a trainer's settings
// (`DPOConfig(...)`), and what these and the script's other calls say.
struct PythonScript {
  struct Config {
    std::string name;
    int line = 0;
  };
  std::vector<Config> configs;
  std::vector<PeerSetting> settings;
};
using PythonReader = std::function<core::Result<PythonScript>(const std::filesystem::path& file)>;

struct PeerFile {
  std::string title;    // of the trainer: "OpenRLHF"
  std::string program;  // "openrlhf.cli.train_sft"; empty: a file of settings alone
  Methods method = kNoMethod;
  std::vector<Setting> implied;  // keys that the program says, before all others
  std::vector<PeerSetting> settings;
};

// `peer` is openrlhf, trl or verl; `asked`: the method, or kNoMethod where the file says it.
// A script may name a YAML file (TRL's --config) or a Python script, which is looked for beside it
// and here, and say how many processes it starts (accelerate, torchrun). Errors
// (kConfig; kNotFound for a missing file) name file and line: no such peer, too large, not YAML or
// no script, no command of that trainer, several, a method that nothing says, no setting at all.
core::Result<PeerFile> read_peer_file(const Table& table,
                                      std::string_view peer,
                                      const std::filesystem::path& file,
                                      Methods asked,
                                      const Environment& environment,
                                      const PythonReader& python);

}  // namespace troupe::config
