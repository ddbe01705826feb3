// Which roles a run wants, and which processes the head's own machine has for them. Pure.
#pragma once

#include "actors/node/company_role.hpp"
#include "runtime/config/train_config.hpp"

namespace troupe::app {

// A process for each heavy role that is to run here, and the roles that the run wants.
void cast_roles(const config::TrainConfig& config, actors::CompanyOptions& options);

}  // namespace troupe::app
