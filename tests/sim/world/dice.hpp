// Draws of one seed, for the plans of worlds.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/rng.hpp"

#include <cstdint>
#include <iterator>

namespace troupe::sim {

class Dice {
 public:
  explicit Dice(std::uint64_t seed, std::uint64_t stream = 77) : rng_(seed, stream) {}
  std::uint64_t below(std::uint64_t bound) { return rng_.next_below(bound); }
  bool one_in(std::uint64_t times) { return below(times) == 0; }
  core::Duration between(core::Duration low, core::Duration high) {
    return low + core::Duration(below(static_cast<std::uint64_t>((high - low).count()) + 1));
  }
  template <class List>
  auto one_of(const List& list) {
    return *std::next(std::begin(list), static_cast<std::ptrdiff_t>(below(std::size(list))));
  }

 private:
  core::Rng rng_;
};

}  // namespace troupe::sim
