#include "runtime/learn/supervised/packing.hpp"

#include "runtime/core/check.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::learn {

std::vector<std::vector<std::size_t>> pack_longest_first(std::span<const std::int64_t> costs,
                                                         std::int64_t cost_max) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  std::vector<std::vector<std::size_t>> batches;
  std::vector<std::int64_t> room;
  for (const std::size_t row : order) {
    const std::int64_t cost = costs[row];
    if (cost == 0) continue;
    TROUPE_CHECK(cost <= cost_max, "rows are checked before they are packed");
    const auto fits =
        std::find_if(room.begin(), room.end(), [&](std::int64_t left) { return left >= cost; });
    if (fits == room.end()) {
      batches.push_back({row});
      room.push_back(cost_max - cost);
    } else {
      batches[static_cast<std::size_t>(fits - room.begin())].push_back(row);
      *fits -= cost;
    }
  }
  return batches;
}

}  // namespace troupe::learn
