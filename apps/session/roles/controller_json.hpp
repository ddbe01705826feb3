// The controller's snapshot as JSON, one part of `troupe status --json`. Pure.
#pragma once

#include "actors/controller/snapshot.hpp"

#include <string>

namespace troupe::app {

std::string controller_json(const actors::ControllerSnapshot& snapshot);

}  // namespace troupe::app
