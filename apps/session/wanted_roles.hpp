// Lists the roles that a run needs outside its head process. Pure.
#pragma once

#include "actors/company/company.hpp"
#include "runtime/config/train_config.hpp"

#include <string>
#include <vector>

namespace troupe::app {

// Each role that runs on this host is bound to a node of its own; any node may take the others. The
// policy comes first.
std::vector<actors::WantedRole> wanted_roles(const config::TrainConfig& config);

// The kinds of roles that nodes of other hosts must offer: "generator,reward".
std::string awaited_kinds(const config::TrainConfig& config);

}  // namespace troupe::app
