// The number of lanes belongs to a run (docs/adr/0020-lanes.md), also where it follows from the
// number of ranks: a run that goes on with other ranks keeps its lanes.
#pragma once

#include "runtime/config/builder.hpp"

namespace troupe::app {

// Sets train.lanes, if it was not given, to that of the run or checkpoint that the configuration
// goes on from; does nothing when there is none, or it cannot be read.
core::Result<void> keep_lanes(config::Builder& builder);

}  // namespace troupe::app
