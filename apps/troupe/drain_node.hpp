// Takes a node out of a running company: waits until what it has begun is done, for `wait_s`
// seconds, then until it has left.
#pragma once

#include "actors/company/limits.hpp"
#include "apps/troupe/ask_company.hpp"

#include <cmath>
#include <string>

namespace troupe::app {

inline Result<void> drain_node(const session::JoinFlags& join,
                               const std::string& name,
                               double wait_s) {
  const std::chrono::milliseconds wait(std::llround(wait_s * 1000));
  actors::DrainNode request{name, static_cast<std::uint32_t>(wait.count())};
  TROUPE_TRY(ask_company(join, std::move(request), wait + actors::company::limits::kSpawnDeadline));
  return {};
}

}  // namespace troupe::app
