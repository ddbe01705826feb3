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

// The number of optimiser steps that made a set of weights. 0 is the model as loaded.
using Version = std::uint64_t;

}  // namespace troupe::core

template <class Tag>
struct std::hash<troupe::core::Id<Tag>> {
  std::size_t operator()(const troupe::core::Id<Tag>& id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};
