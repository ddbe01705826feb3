// A plan as text for people and as JSON for programs. Pure functions.
#pragma once

#include "runtime/plan/plan.hpp"

#include <string>

namespace troupe::app {

// Several lines, each ended.
std::string plan_text(const plan::RunFacts& facts, const plan::Plan& plan);

// One JSON object on one line; all sizes in bytes (docs/plan.md lists its members).
std::string plan_json(const plan::RunFacts& facts, const plan::Plan& plan);

}  // namespace troupe::app
