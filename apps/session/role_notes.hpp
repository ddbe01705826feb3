// What the user is told of the roles without asking: that nothing progresses and who waits for
// whom, what a plain Python reward costs an update, which servers of a reward are away. Pure; told
// the time.
#pragma once

#include "apps/session/role_figures.hpp"
#include "runtime/core/clock.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace troupe::session {

class RoleNotes {
 public:
  // `groups`: of an update; 0 in supervised runs.
  RoleNotes(std::uint64_t groups, core::TimePoint now) : groups_(groups), moved_(now) {}

  // The lines that are due now: about no progress once every kNoProgress without any, about costs
  // once for each reward, about a reward's servers at most once every kNoProgress.
  std::vector<std::string> look(const RoleReports& roles, core::TimePoint now);

 private:
  const std::uint64_t groups_;
  double last_progress_ = -1;
  core::TimePoint moved_;  // the last progress, or note about its absence
  std::set<std::string> costs_told_;
  std::map<std::string, core::TimePoint> servers_told_;
};

}  // namespace troupe::session
