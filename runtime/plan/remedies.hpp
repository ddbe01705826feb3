// Looks for the settings that make a role fit. Tries each change of a setting alone, then two and
// three at once, in an order that begins with what costs least, and keeps the first that works.
// Pure functions.
#pragma once

#include "runtime/plan/plan.hpp"

#include <string>
#include <vector>

namespace troupe::plan {

// The flag that gives idle devices something to do, and under which all still fits: more engines,
// else more ranks of the trained model; "" when there are none, or none helps.
std::string use_of_idle(const RunFacts& facts, const Plan& plan);

// The settings, as on the command line ("--train.micro_tokens_max 1024"), under which the shortfall
// is gone; empty: no setting helps. `facts` are those whose plan has it.
std::vector<std::string> remedy(const RunFacts& facts, const Shortfall& shortfall);

}  // namespace troupe::plan
