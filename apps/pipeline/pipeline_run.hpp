// Runs the stages of a pipeline one after the other, each in a process of its own, and goes on
// where an earlier call was interrupted. Owned by the command, on the main thread.
#pragma once

#include "apps/pipeline/command_lines.hpp"
#include "apps/pipeline/pipeline_file.hpp"
#include "apps/pipeline/scope.hpp"
#include "apps/pipeline/stage_process.hpp"
#include "runtime/core/owned_fd.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace troupe::pipeline {

// Checks a command line before anything runs: what is wrong with its flags.
using CheckWords = std::function<core::Result<void>(const std::vector<std::string>& words)>;

// A stage in one turn, for the final table.
struct StageRow {
  std::string id, command;
  std::shared_ptr<const StageTurn> turn;
  // Columns of the table and the names of their figures.
  std::vector<std::pair<std::string, std::string>> report;
  bool before = false;  // an earlier call had finished it
};

// What a search found.
struct SearchRow {
  std::string id;
  struct Point {
    std::map<std::string, Value> variables;
    double figure = 0;
  };
  std::vector<Point> points;
  std::size_t best = 0;
};

class PipelineRun {
 public:
  // `file` and what it is made of outlive this object.
  PipelineRun(const PipelineFile& file, std::filesystem::path folder, CheckWords check)
      : file_(file), lines_(file), folder_(std::move(folder)), check_(std::move(check)) {}

  // Goes through all stages without running one: every reference and every command is checked.
  // With `print` it prints what would be run. Errors (kConfig), each with its place in the file.
  core::Result<void> check(bool print);
  // Runs what is not finished. Errors: kResources when another pipeline works in the folder; that
  // of a stage that failed, with its last lines; kInterrupted.
  core::Result<void> run();

  const std::vector<StageRow>& rows() const { return rows_; }
  const std::vector<SearchRow>& searches() const { return searches_; }
  const std::filesystem::path& folder() const { return folder_; }
  // Whether this process has the folder to itself.
  bool holds_folder() const { return static_cast<bool>(lock_); }

 private:
  enum class Mode { kCheck, kPrint, kRun };

  core::Result<void> walk(Mode mode);
  core::Result<void> body(const std::vector<Block>& blocks,
                          Scope& scope,
                          const std::string& prefix);
  core::Result<void> block(const Block& block, Scope& scope, const std::string& prefix);
  core::Result<void> repeat(const Block& block, Scope& scope, const std::string& prefix);
  core::Result<void> each(const Block& block, Scope& scope, const std::string& prefix);
  core::Result<void> search(const Block& block, Scope& scope, const std::string& prefix);
  core::Result<void> stage(const Block& block, Scope& scope, const std::string& prefix);

  core::Result<void> look_at(const std::vector<std::string>& words, StageTurn& turn);
  core::Result<void> lock();

  const PipelineFile& file_;
  const CommandLines lines_;
  const std::filesystem::path folder_;
  const CheckWords check_;
  Mode mode_ = Mode::kCheck;
  core::OwnedFd lock_;
  std::vector<StageRow> rows_;
  std::vector<SearchRow> searches_;
  std::map<const Block*, Scope> searched_;  // results of searches that are done once
};

// The table of stages, with their shares of the time and the figures that the file chooses.
std::string summary_text(const PipelineRun& run);
// The table and the searches as JSON, with a newline; `state` is finished, failed or stopped.
std::string summary_json(const PipelineRun& run,
                         const PipelineFile& file,
                         const std::string& state);

}  // namespace troupe::pipeline
