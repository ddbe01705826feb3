// Times of a test, in milliseconds from a start.
#pragma once

#include "runtime/core/clock.hpp"

#include <chrono>
#include <cstdint>

namespace troupe::actors::company {

inline core::TimePoint at(std::int64_t ms) {
  return core::TimePoint(std::chrono::milliseconds(ms));
}

}  // namespace troupe::actors::company
