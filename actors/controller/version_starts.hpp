// Which weights each of the newest updates began with. From it follow the oldest weights that may
// sample for an update, so that no token is ever older than the bound, and the ages that are
// reported. A pure value; bound: the newest staleness_max + 2 updates.
#pragma once

#include "runtime/core/ids.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace troupe::actors {

class VersionStarts {
 public:
  explicit VersionStarts(std::uint64_t staleness_max) : staleness_max_(staleness_max) {}

  // Updates are recorded in order.
  void record(std::uint64_t update, core::Version version);

  core::Version newest() const;
  // The weights at the start of update - staleness_max, or of the first update that is known here.
  core::Version min_for(std::uint64_t update) const;
  // Oldest first, the update's own last: one update more than the bound allows, so that a breach
  // shows.
  std::vector<core::Version> window(std::uint64_t update) const;

  const std::map<std::uint64_t, core::Version>& all() const noexcept { return starts_; }

 private:
  std::uint64_t staleness_max_;
  std::map<std::uint64_t, core::Version> starts_;
};

}  // namespace troupe::actors
