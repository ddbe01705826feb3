// How a training run begins: opens the run folder and decides, by --resume, whether it goes on from
// a checkpoint, from the start, or not at all. Used once, by the command that trains.
#pragma once

#include "runtime/core/config_set.hpp"
#include "runtime/core/result.hpp"
#include "runtime/store/checkpoint_store.hpp"
#include "runtime/store/run_folder.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe::store {

struct RunStart {
  RunFolder folder;
  std::optional<Checkpoint> checkpoint;  // to go on from; empty: from the model as given
  std::vector<std::string> notes;        // what the user should know, in order
};

// auto: the newest valid checkpoint of run.path; damaged ones are passed over with a note. off: a
// run that is there is set aside. A path: that checkpoint, into run.path. Everything after the
// checkpoint is cut off the run folder, and resolved_config.yaml is written. Errors: kConfig when a
// resumed run's configuration differs in a key that alters the result (names each), or newer
// checkpoints stand behind the chosen one; kData when no checkpoint is valid.
core::Result<RunStart> start_run(const core::TrainConfig& config,
                                 const std::map<std::string, std::string, std::less<>>& origins);

}  // namespace troupe::store
