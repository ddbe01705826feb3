// Begins a training run: opens the run folder and decides, by --resume, whether the run resumes
// from a checkpoint, starts from the model, or is refused. Used once, by the command that trains.
#pragma once

#include "runtime/config/builder.hpp"
#include "runtime/core/result.hpp"
#include "runtime/store/checkpoint_store.hpp"
#include "runtime/store/run_folder.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe::store {

struct RunStart {
  RunFolder folder;
  std::optional<Checkpoint> checkpoint;  // to resume from; empty: start from the model as given
  // The updates before it are in another run's folder; nothing when that is not known.
  std::optional<std::uint64_t> first = 0;
  std::vector<std::string> notes = {};  // messages for the user, in order
};

// Checks the checkpoint from which a run would resume, before anything is removed; returns notes
// for the user. `branch`: the checkpoint belongs to another run folder. After an error the run does
// not start.
using ResumeCheck = std::function<core::Result<std::vector<std::string>>(
    const Checkpoint& checkpoint, bool branch)>;

// --resume auto resumes from the newest valid checkpoint in run.path; a note names each damaged
// one.
// --resume off starts anew; a run already in run.path is renamed (set_aside). --resume PATH resumes
// from that checkpoint and writes to run.path; again, while a branch has no checkpoint of its own.
// Then removes metrics, ledger records, rollouts and evaluations after the checkpoint from the run
// folder, and writes resolved_config.yaml. A folder without checkpoints and metrics may be reused
// with any configuration. Notes say which updates the files of the folder lack. `may_grow`: no
// number of the run depends on its length, so the same command with a larger --train.max_steps goes
// on with it. Errors: kConfig if
// the configuration differs from the resumed run's in a key that changes results (the error names
// the keys, and flags that start a branch), if run.path holds a checkpoint newer than PATH, or if
// it holds another run; kData if no checkpoint is valid; those of `check`.
core::Result<RunStart> start_run(const config::TrainConfig& config,
                                 const config::Origins& origins,
                                 bool may_grow,
                                 const ResumeCheck& check = nullptr);

// The flags with which a run resumes from `checkpoint` in a new folder next to `run_path`.
std::string branch_flags(const std::filesystem::path& checkpoint,
                         const std::filesystem::path& run_path);

}  // namespace troupe::store
