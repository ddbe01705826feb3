// How many environments a configuration names: more than one is a mistake, none means that the run
// has no episodes. A pure function.
#pragma once

#include "runtime/config/train_config.hpp"

namespace troupe::config {

inline int environments_of(const TrainConfig& c) {
  return (c.env.python.empty() ? 0 : 1) + (c.env.command.empty() ? 0 : 1) +
         (c.env.openenv.empty() ? 0 : 1) + (c.env.listen.empty() ? 0 : 1) +
         (c.env.attached ? 1 : 0);
}

}  // namespace troupe::config
