// Random weights by all threads of a team: the numbers of randomise() in params.hpp, for models so
// large that one thread would take long.
#pragma once

#include "runtime/core/team.hpp"
#include "runtime/model/params.hpp"

namespace troupe::model {

// The member's share of every tensor.
void randomise(core::Team member, ParamStore& params, std::uint64_t seed, float std);

}  // namespace troupe::model
