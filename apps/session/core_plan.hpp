// Which role computes with how many cores of this host. Synchronous training leases all cores to
// each role in turn, the critic learning before the policy does; asynchronous training splits them,
// because generators, policy and critic run at once. A role on a GPU needs one core. Pure.
#pragma once

#include "runtime/config/train_config.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace troupe::app {

struct CorePlan {
  std::map<std::string, std::uint32_t> threads;  // by kind of role
  std::string text;                              // one line for the user
};

// `cores`: that this process may use; train.threads above 0 replaces it.
CorePlan plan_cores(const config::TrainConfig& config, std::uint32_t cores);

}  // namespace troupe::app
