// Which roles a run wants beside those of the process that it was started in. Pure.
#pragma once

#include "actors/company/company.hpp"
#include "runtime/config/train_config.hpp"

#include <string>
#include <vector>

namespace troupe::app {

// Each that is to run on this host is bound to a node of its own; the others may go to any. The
// policy comes first.
std::vector<actors::WantedRole> wanted_roles(const config::TrainConfig& config);

// Kinds of roles that have to come from other nodes: "generator,reward".
std::string awaited_kinds(const config::TrainConfig& config);

}  // namespace troupe::app
