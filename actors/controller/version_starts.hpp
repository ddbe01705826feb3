// Records the version of the weights at the start of each of the newest updates. It gives the
// oldest version that may sample for an update within the staleness bound, and the versions from
// which token ages are computed. A pure value; bound: the newest staleness_max + 2 updates.
#pragma once

#include "runtime/core/check.hpp"
#include "runtime/core/ids.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace troupe::actors::controller {

class VersionStarts {
 public:
  explicit VersionStarts(std::uint64_t staleness_max) : staleness_max_(staleness_max) {}

  // Updates are recorded in order.
  void record(std::uint64_t update, core::Version version) {
    TROUPE_CHECK(starts_.empty() || starts_.rbegin()->first < update, "updates start in order");
    TROUPE_CHECK(starts_.empty() || starts_.rbegin()->second <= version, "weights never get older");
    starts_.emplace(update, version);
    while (starts_.size() > staleness_max_ + 2)
      starts_.erase(starts_.begin());
  }

  core::Version newest() const {
    TROUPE_CHECK(!starts_.empty(), "weights are published before anything is asked about them");
    return starts_.rbegin()->second;
  }
  // The first recorded update that begins with this version, or the oldest recorded one.
  std::uint64_t first_with(core::Version version) const {
    const auto found = std::find_if(starts_.begin(), starts_.end(),
                                    [version](const auto& one) { return one.second >= version; });
    return found == starts_.end() ? starts_.begin()->first : found->first;
  }
  // The version at the start of update - staleness_max, or of the oldest recorded update after it.
  core::Version min_for(std::uint64_t update) const {
    TROUPE_CHECK(!starts_.empty(), "weights are published before anything is asked about them");
    const auto found = starts_.lower_bound(update - std::min(update, staleness_max_));
    TROUPE_CHECK(found != starts_.end(), "a ticket is issued within the bound");
    return found->second;
  }
  // The recorded versions, oldest first, the update's own last: one more than the bound allows, so
  // that a violation shows.
  std::vector<core::Version> window(std::uint64_t update) const {
    std::vector<core::Version> versions;
    for (const auto& [one, version] : starts_) {
      if (one <= update) versions.push_back(version);
    }
    return versions;
  }

  const std::map<std::uint64_t, core::Version>& all() const noexcept { return starts_; }

 private:
  std::uint64_t staleness_max_;
  std::map<std::uint64_t, core::Version> starts_;
};

}  // namespace troupe::actors::controller
