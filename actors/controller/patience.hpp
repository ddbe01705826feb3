// How the fleet waits and what it gives whom after failures. Pure functions.
#pragma once

#include "actors/controller/limits.hpp"
#include "actors/controller/ticket_queue.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/rng.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

namespace troupe::actors::controller {

// The pause before a generator is sent weights again that it missed. Doubles with each miss; up to
// half of it is random, so that many generators do not ask at once.
inline core::Duration pause_after(std::uint64_t misses,
                                  std::uint64_t life,
                                  const std::string& name) {
  const std::uint64_t doublings = std::min<std::uint64_t>(misses - 1, 10);
  const auto most = std::min<core::Duration>(limits::kWeightsAgain_min * (1 << doublings),
                                             limits::kWeightsAgain_max);
  core::Rng rng(core::derive_seed(std::hash<std::string>()(name), life, misses));
  return most / 2 + core::Duration(static_cast<core::Duration::rep>(
                        rng.next_uniform() * static_cast<double>(most.count()) / 2));
}

// How many groups a generator may have that samples a ticket whose generators were lost: a quarter
// with each loss after the first, so that a ticket that ends its generators is alone after a few,
// before its generator counts as one that cannot be kept running, and the others are sampled
// without it. `room`: groups that a generator has of a kind.
inline std::uint32_t groups_among(std::uint32_t room, std::size_t losses) {
  if (losses < 2) return kAnyNumber;
  return std::max<std::uint32_t>(room >> std::min<std::size_t>(2 * (losses - 1), 31), 1);
}

}  // namespace troupe::actors::controller
