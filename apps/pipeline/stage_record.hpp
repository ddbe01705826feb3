// The record of a stage, in its folder: what was run from what, how far it came, and its figures. A
// stage is finished only by this file, which is replaced as a whole. Value types; one thread.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::pipeline {

// A number, or the mean of an interval.
struct Figure {
  double mean = 0;
  std::optional<double> low, high;
};
using Figures = std::map<std::string, Figure>;

// What decides whether a stage is the one that was run.
struct StageInputs {
  // The stage's words; its own folder is ".", the pipeline's is left out.
  std::vector<std::string> command;
  std::map<std::string, std::string> files;  // SHA-256 of the files and folders that it names

  bool operator==(const StageInputs&) const = default;
};

struct StageRecord {
  std::string id;     // "seed-1/sft"
  std::string state;  // running, finished, failed, stopped
  StageInputs inputs;
  std::uint64_t attempts = 0;    // how often it was started
  std::uint64_t losses = 0;      // how often it was killed, froze or lacked something
  double wall_s = 0, cpu_s = 0;  // of all attempts
  std::uint64_t steps = 0;       // of a training run
  Figures figures;
  std::string error;

  bool finished() const { return state == "finished"; }
};

// Nothing if there is no record or none that can be read.
std::optional<StageRecord> read_record(const std::filesystem::path& folder);
core::Result<void> write_record(const std::filesystem::path& folder, const StageRecord& record);

// The inputs of a command line: it hashes each word, or part of a word between commas, that is the
// path of a file or folder. Of a folder count the files right in it. `own`: the stage's folder,
// below `root`, the pipeline's. Errors: a file that cannot be read.
core::Result<StageInputs> inputs_of(const std::vector<std::string>& words,
                                    const std::filesystem::path& own,
                                    const std::filesystem::path& root);

// What is new, for the user: "--actor.adam.lr was 1e-5 and is 2e-5", "data.jsonl has changed".
std::string difference(const StageInputs& before, const StageInputs& now);

// The figures that a stage left. `train`: the last value of each metric in its metrics.jsonl, and
// its number of steps. Otherwise the last line of the log that is a JSON object, flattened:
// "all.pass@1".
struct StageFigures {
  Figures figures;
  std::uint64_t steps = 0;
};
StageFigures training_figures(const std::filesystem::path& metrics);
StageFigures printed_figures(const std::filesystem::path& log);

}  // namespace troupe::pipeline
