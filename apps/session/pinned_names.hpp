// Names of models and data sets of a hub in a configuration: each is found or downloaded before a
// run begins, and gets the commit that was found, OWNER/NAME@COMMIT. So the run's resolved
// configuration says what it was made from, its other processes take the same files, and it goes on
// with them even when the hub's branch has moved.
#pragma once

#include "runtime/config/builder.hpp"

namespace troupe::session {

// Of a name without a revision, the commit of the run is kept that the configuration goes on from:
// its folder holds `resolved_config.yaml` with that name. Errors: those of names::locate, with the
// key.
core::Result<void> pin_names(config::Builder& builder);

}  // namespace troupe::session
