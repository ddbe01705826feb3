// What belongs to a run and stays with it when it goes on: the number of lanes, also where it
// follows from the number of ranks (docs/adr/0020-lanes.md), and what runs did before there was a
// key for it (Facts::older).
#pragma once

#include "runtime/config/builder.hpp"

#include <optional>

namespace troupe::session {

// Sets those keys, where they were not given, to what the run or checkpoint has that the
// configuration goes on from; does nothing when there is none, or it cannot be read.
core::Result<void> keep_of_run(config::Builder& builder);

// The configuration of the run that `given` goes on from: of its folder, or of the folder of the
// checkpoint in `resume`. Nothing when there is none, or it cannot be read.
std::optional<config::TrainConfig> run_before(const config::TrainConfig& given);

}  // namespace troupe::session
