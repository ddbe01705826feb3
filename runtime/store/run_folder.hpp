// The folder into which a training run writes: its lock, and the paths of these files:
//   resolved_config.yaml  metrics.jsonl  ledger.log  troupe.log  run.lock  generation.json
//   rollouts/step_000123.jsonl  eval/step_000123.jsonl  tensorboard/  ckpt/step_000010/
// One process uses it at a time (a lock that the kernel releases when the process dies). Steps
// count finished updates; step 0 is the model before training. docs/run_folder.md lists all files.
// Owned by the command that trains; paths may be copied to any thread.
#pragma once

#include "runtime/core/owned_fd.hpp"
#include "runtime/core/result.hpp"
#include "runtime/store/generation.hpp"
#include "runtime/store/kept_files.hpp"
#include "runtime/store/step_log.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::store {

class RunFolder {
 public:
  // Makes the folder if it does not exist, and takes its lock and the next generation of the run
  // (once a process). Error kResources: another process holds the lock, or the folder cannot be
  // written.
  static core::Result<RunFolder> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config_file() const { return path_ / "resolved_config.yaml"; }
  std::filesystem::path metrics_file() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path ledger_file() const { return path_ / "ledger.log"; }
  std::filesystem::path log_file() const { return path_ / "troupe.log"; }
  std::filesystem::path tensorboard_folder() const { return path_ / "tensorboard"; }
  std::filesystem::path checkpoint_folder() const { return path_ / "ckpt"; }
  std::filesystem::path experience_folder() const { return path_ / "experience"; }
  StepLog experience() const { return StepLog(experience_folder(), system_disk(), kept_); }
  std::filesystem::path rollouts_file(std::uint64_t step) const;
  std::filesystem::path eval_file(std::uint64_t step) const;

  const Generation& generation() const { return generation_; }

  // The watch over what the run has written here.
  const std::shared_ptr<KeptFiles>& kept() const { return kept_; }

  // Error kResources once the folder was removed or renamed: its paths then lead nowhere or into
  // another run's folder, and its lock protects nothing. Error kClosed once a later head has taken
  // the run over. Nothing may be written any more then.
  core::Result<void> check_here() const;

  // True if the folder holds results of a run: a checkpoint or a line of metrics. A failed start
  // leaves neither.
  bool has_run() const;

  // Removes everything after `step`, or everything if it is empty: lines of metrics.jsonl, ledger
  // records, rollout and eval files.
  core::Result<void> cut_back(std::optional<std::uint64_t> step) const;
  // Removes all files of the experience log. What earlier heads started is another run's then.
  core::Result<void> drop_experience();

 private:
  void keep_generation() const;
  RunFolder(std::filesystem::path path, core::OwnedFd lock, Generation generation)
      : path_(std::move(path)),
        lock_(std::move(lock)),
        generation_(std::move(generation)),
        kept_(std::make_shared<KeptFiles>(path_)) {}
  std::filesystem::path path_;
  core::OwnedFd lock_;
  Generation generation_;
  std::shared_ptr<KeptFiles> kept_;
};

// "step_000123": the name of a step's checkpoint folder and, followed by .jsonl, of the step's
// other files. `step_of` is the inverse; empty for any other name.
std::string step_name(std::uint64_t step);
std::optional<std::uint64_t> step_of(std::string_view name);

// The path "<path><word><n>" with the smallest n >= 1 that does not exist.
std::filesystem::path free_sibling(const std::filesystem::path& path, const std::string& word);

// Renames a folder to the first free `<path>.old-<n>`. Returns the new path, empty if there was no
// folder.
core::Result<std::filesystem::path> set_aside(const std::filesystem::path& path);

// Truncates metrics.jsonl before the first line whose "step" is above `step` (to nothing if `step`
// is empty), and removes damaged lines at its end. Error kData: a damaged line before a sound one.
core::Result<void> cut_metrics(const std::filesystem::path& file,
                               std::optional<std::uint64_t> step);

}  // namespace troupe::store
