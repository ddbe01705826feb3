#include "runtime/experience/version_runs.hpp"

#include <algorithm>

namespace troupe::experience {

VersionRuns::VersionRuns(std::initializer_list<core::Version> versions)
    : VersionRuns(std::span<const core::Version>(versions.begin(), versions.size())) {}

VersionRuns::VersionRuns(std::span<const core::Version> versions) {
  for (const core::Version version : versions)
    add(version);
}

VersionRuns VersionRuns::all(core::Version version, std::uint64_t tokens) {
  VersionRuns runs;
  runs.add(version, tokens);
  return runs;
}

void VersionRuns::add(core::Version version, std::uint64_t count) {
  if (count == 0) return;
  if (runs_.empty() || runs_.back().version != version) runs_.push_back({version, 0});
  runs_.back().count += count;
  size_ += count;
}

core::Version VersionRuns::oldest() const {
  return std::ranges::min(runs_, {}, &Run::version).version;
}

core::Version VersionRuns::newest() const {
  return std::ranges::max(runs_, {}, &Run::version).version;
}

}  // namespace troupe::experience
