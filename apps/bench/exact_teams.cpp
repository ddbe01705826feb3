#include "apps/bench/exact_teams.hpp"

#include "apps/cli/placement.hpp"
#include "kernels/ops.hpp"

namespace troupe::bench {

core::Result<ExactTeams> ExactTeams::open(const ExactPlace& place) {
  ExactTeams teams;
  TROUPE_TRY_SET(teams.wide_, cli::make_team({place.device, 2}));
  const bool on_cpu = place.device == "cpu";
  if (on_cpu) teams.narrow_ = std::make_unique<core::SerialTeam>();
  teams.isa_ = on_cpu ? kernels::ops().name : "cuda";
  return teams;
}

}  // namespace troupe::bench
