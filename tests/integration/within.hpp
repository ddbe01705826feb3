// Waiting for what another process does: the one way in which tests look again after a while.
#pragma once

#include "apps/bench/logged_process.hpp"

#include <stdlib.h>

#include <algorithm>
#include <thread>

namespace troupe::test {

// Limits of waits are for hangs alone. How much longer one is waited for on a machine that has more
// to do than its cores can: a test then asserts no more than the order of things.
inline double more_under_load(double limit_s) {
  double load = 0;
  // A short one is a pause between two looks.
  if (limit_s < 2 || ::getloadavg(&load, 1) != 1) return 0;
  const double share = load / std::max(1u, std::thread::hardware_concurrency());
  return limit_s * std::clamp(share - 1, 0.0, 30.0);
}

// Looks until the condition holds; false at the limit, which only a failing test reaches.
inline bool within(double limit_s, const std::function<bool()>& condition) {
  return bench::holds_within(limit_s, condition) ||
         bench::holds_within(more_under_load(limit_s), condition);
}

}  // namespace troupe::test
