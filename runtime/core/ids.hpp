// Ids of things that travel between roles: integers of distinct types, so that a group's id cannot
// be passed for a request's. Value types; safe on any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace troupe::core {

template <class Tag>
struct Id {
  std::uint64_t value = 0;
  friend auto operator<=>(const Id&, const Id&) = default;
};

using RequestId = Id<struct RequestTag>;  // one call between two roles, unique per sender and epoch
using GroupId = Id<struct GroupTag>;      // the n samples of one prompt inside an engine
using RunId = Id<struct RunTag>;

// The heads of a run, one after the other, are its generations, from 1 on. The epoch of a role
// counts its starts, with the generation in the upper half: what an earlier head says or started
// has a lower epoch than anything of a later one.
constexpr std::uint64_t first_epoch(std::uint64_t generation) {
  return generation << 32;
}
constexpr std::uint64_t generation_of(std::uint64_t epoch) {
  return epoch >> 32;
}
constexpr std::uint64_t start_of(std::uint64_t epoch) {
  return epoch & 0xffffffff;
}

// The number of optimiser steps that made a set of weights. 0 is the model as loaded.
using Version = std::uint64_t;

}  // namespace troupe::core

template <class Tag>
struct std::hash<troupe::core::Id<Tag>> {
  std::size_t operator()(const troupe::core::Id<Tag>& id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};
