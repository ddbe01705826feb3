// Waiting for what another process does: the one place in the tests that looks again after a while.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>

namespace troupe::test {

// Looks until the condition holds; false at the limit, which only a failing test reaches.
inline bool within(double limit_s, const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

}  // namespace troupe::test
