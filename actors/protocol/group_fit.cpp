// The longest go first.
#include "actors/protocol/group_fit.hpp"

#include "runtime/core/group_bytes.hpp"
#include "runtime/wire/limits.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::actors {

static_assert(core::kGroupFrame_bytes == wire::limits::kFrame_bytes_max);

std::vector<bool> that_fit(const std::vector<std::uint64_t>& bytes, std::uint64_t bytes_max) {
  std::vector<bool> stays(bytes.size(), true);
  std::vector<std::size_t> longest(bytes.size());
  std::iota(longest.begin(), longest.end(), std::size_t{0});
  std::stable_sort(longest.begin(), longest.end(),
                   [&](std::size_t a, std::size_t b) { return bytes[a] < bytes[b]; });
  std::uint64_t all = std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
  for (auto place = longest.rbegin(); place != longest.rend() && all > bytes_max; ++place) {
    stays[*place] = false;
    all -= bytes[*place];
  }
  return stays;
}

void fit_frame(PutGroup& group) {
  std::vector<std::uint64_t> bytes;
  for (const DeliveredSample& sample : group.samples) {
    bytes.push_back(
        core::delivered_bytes(sample.tokens.size(), sample.text.size(), !sample.kept_mass.empty()));
  }
  const std::vector<bool> stays = that_fit(bytes, core::frame_left(0));
  const std::size_t before = group.samples.size();
  std::vector<DeliveredSample> kept;
  for (std::size_t i = 0; i < before; ++i) {
    if (stays[i]) kept.push_back(std::move(group.samples[i]));
  }
  if (kept.size() < std::min<std::size_t>(2, before)) kept.clear();
  group.dropped = static_cast<std::uint32_t>(before - kept.size());
  group.samples = std::move(kept);
}

}  // namespace troupe::actors
