// Lists the roles that a run needs besides its controller and data role. Pure.
#pragma once

#include "actors/company/company.hpp"
#include "runtime/config/train_config.hpp"

#include <string>
#include <vector>

namespace troupe::session {

// The roles that the control plane must start. Each role that runs on this host is bound to a node
// of its own; any node that offers the kind may run the others. The policy comes first, rank by
// rank. Generators of other hosts are not listed: the company adds them when their nodes join.
std::vector<actors::company::WantedRole> wanted_roles(const config::TrainConfig& config);

// The kinds of these roles that a session waits for; it begins without generators.
std::vector<std::string> needed_kinds(const config::TrainConfig& config);

// The kinds of roles that nodes of other hosts must offer: "generator,reward".
std::string awaited_kinds(const config::TrainConfig& config);

}  // namespace troupe::session
