// Which subcommands may be stages, what each writes where in its stage's folder, and the words of
// its command line. Pure, but for `output`, which looks into a stage's folder.
#pragma once

#include "apps/pipeline/pipeline_file.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::pipeline {

// What happens to an output that an attempt left which did not end.
enum class Leftover {
  kContinued,  // the command goes on from it
  kWhole,      // it appears only when all is done: nothing is left to do
  kRemoved,    // written anew
};

struct StageCommand {
  std::string_view name;                // the subcommand
  std::string_view out_flag, out_name;  // where it writes, in its stage's folder; empty: nowhere
  Leftover leftover = Leftover::kContinued;
  std::vector<std::string_view> more;  // flags that a pipeline adds where the stage has none
};

// Null for a subcommand that cannot be a stage.
const StageCommand* stage_command(const Stage& stage);
// The names of all of them, for an error message: "train, generate, score, ...".
std::string stage_command_names();

// The command line: command, files of the configuration, then flags. `keys` and `config` are filled
// in already. Error kConfig: a flag that the pipeline sets itself.
core::Result<std::vector<std::string>> words_of(const Stage& stage,
                                                const std::vector<std::string>& config,
                                                const Values& keys,
                                                const std::filesystem::path& folder);

// The names of what a stage of this command has besides its folder: "model", "out".
std::vector<std::string_view> output_names(const StageCommand& command);
// The path of an output. Before the stage has run it is the path that it may get. Error kData: the
// stage is finished and left no such thing.
core::Result<std::filesystem::path> output(const StageCommand& command,
                                           std::string_view name,
                                           const std::filesystem::path& folder,
                                           bool finished);

// The flag with dashes: "data.dataset" is "--data.dataset".
std::string flag_of(const std::string& key);

}  // namespace troupe::pipeline
