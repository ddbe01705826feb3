#include "actors/controller/version_starts.hpp"

#include "runtime/core/check.hpp"

#include <algorithm>

namespace troupe::actors {

void VersionStarts::record(std::uint64_t update, core::Version version) {
  TROUPE_CHECK(starts_.empty() || starts_.rbegin()->first < update, "updates start in order");
  TROUPE_CHECK(starts_.empty() || starts_.rbegin()->second <= version, "weights never get older");
  starts_.emplace(update, version);
  while (starts_.size() > staleness_max_ + 2)
    starts_.erase(starts_.begin());
}

core::Version VersionStarts::newest() const {
  TROUPE_CHECK(!starts_.empty(), "weights are published before anything is asked about them");
  return starts_.rbegin()->second;
}

core::Version VersionStarts::min_for(std::uint64_t update) const {
  TROUPE_CHECK(!starts_.empty(), "weights are published before anything is asked about them");
  const auto found = starts_.lower_bound(update - std::min(update, staleness_max_));
  TROUPE_CHECK(found != starts_.end(), "a ticket is issued within the bound");
  return found->second;
}

std::vector<core::Version> VersionStarts::window(std::uint64_t update) const {
  std::vector<core::Version> versions;
  for (const auto& [one, version] : starts_) {
    if (one <= update) versions.push_back(version);
  }
  return versions;
}

}  // namespace troupe::actors
