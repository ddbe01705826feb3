// The controller's snapshot as JSON, one part of `troupe status --json`. Pure.
#pragma once

#include "actors/controller/snapshot.hpp"

#include <optional>
#include <string>

namespace troupe::app {

std::string controller_json(const actors::ControllerSnapshot& snapshot);

// The newest weights that such a JSON names; nothing before the first.
std::optional<actors::Published> published_of(const std::string& json);

}  // namespace troupe::app
