// Waiting for what another process does: the one way in which tests look again after a while.
#pragma once

#include "apps/bench/logged_process.hpp"

namespace troupe::test {

// Looks until the condition holds; false at the limit, which only a failing test reaches.
inline bool within(double limit_s, const std::function<bool()>& condition) {
  return app::holds_within(limit_s, condition);
}

}  // namespace troupe::test
