// How the benchmarks take time: on the steady clock, medians of a few rounds.
#pragma once

#include <chrono>

namespace troupe::app {

inline constexpr int kRepetitions = 3;

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace troupe::app
