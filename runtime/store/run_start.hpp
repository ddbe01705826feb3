// How a training run begins: opens the run folder and decides, by --resume, whether it goes on from
// a checkpoint, from the start, or not at all. Used once, by the command that trains.
#pragma once

#include "runtime/config/builder.hpp"
#include "runtime/core/result.hpp"
#include "runtime/store/checkpoint_store.hpp"
#include "runtime/store/run_folder.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::store {

struct RunStart {
  RunFolder folder;
  std::optional<Checkpoint> checkpoint;  // to go on from; empty: from the model as given
  std::vector<std::string> notes;        // what the user should know, in order
};

// Checks the checkpoint that a run would resume from, before anything is removed; returns notes.
// `branch`: it is another run's. An error ends the start.
using ResumeCheck = std::function<core::Result<std::vector<std::string>>(
    const Checkpoint& checkpoint, bool branch)>;

// auto: the newest valid checkpoint of run.path; damaged ones are passed over with a note. off: a
// run that is there is set aside. A path: that checkpoint, into run.path. Everything after the
// checkpoint is cut off the run folder, and resolved_config.yaml is written. A folder in which
// nothing was learned is used again by any configuration. Errors: kConfig when a resumed run's
// configuration differs in a key that alters the result (names each, and the flags that start a
// branch), or newer checkpoints stand behind the chosen one; kData when no checkpoint is valid;
// those of `check`.
core::Result<RunStart> start_run(const config::TrainConfig& config,
                                 const config::Origins& origins,
                                 const ResumeCheck& check = nullptr);

// The flags that go on from a checkpoint in a new folder beside `run_path`.
std::string branch_flags(const std::filesystem::path& checkpoint,
                         const std::filesystem::path& run_path);

}  // namespace troupe::store
