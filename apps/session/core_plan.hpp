// Divides this host's cores among the roles of a run. Synchronous training gives each role all
// cores in turn, the critic before the policy; asynchronous training splits them, because
// generators, policy and critic run at once. A role on a GPU needs one core. Pure.
#pragma once

#include "runtime/config/train_config.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace troupe::session {

struct CorePlan {
  std::map<std::string, std::uint32_t> threads;  // by kind of role
  std::string text;                              // one line for the user
};

// `cores`: how many this process may use; train.threads above 0 replaces it.
CorePlan plan_cores(const config::TrainConfig& config, std::uint32_t cores);

}  // namespace troupe::session
