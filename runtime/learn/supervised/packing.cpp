#include "runtime/learn/supervised/packing.hpp"

#include "runtime/core/check.hpp"
#include "runtime/learn/lanes/even_cut.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace troupe::learn {
namespace {

using Batches = std::vector<std::vector<std::size_t>>;

// The rows that have a target, longest first, equal ones in their order.
std::vector<std::size_t> longest_first(std::span<const std::int64_t> costs) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t row) { return costs[row] == 0; });
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  return order;
}

// Each row into the emptiest of `count` micro-batches, of equal ones the first. Returns nothing if
// a row finds no room.
std::optional<Batches> pack_emptiest(std::span<const std::int64_t> costs,
                                     const std::vector<std::size_t>& order,
                                     std::int64_t cost_max,
                                     std::size_t count) {
  Batches batches(count);
  std::vector<std::int64_t> filled(count);
  for (const std::size_t row : order) {
    const auto emptiest = std::min_element(filled.begin(), filled.end());
    if (*emptiest + costs[row] > cost_max) return std::nullopt;
    *emptiest += costs[row];
    batches[static_cast<std::size_t>(emptiest - filled.begin())].push_back(row);
  }
  return batches;
}

}  // namespace

std::vector<std::vector<std::size_t>> pack_longest_first(std::span<const std::int64_t> costs,
                                                         std::int64_t cost_max) {
  Batches batches;
  std::vector<std::int64_t> room;
  for (const std::size_t row : longest_first(costs)) {
    const std::int64_t cost = costs[row];
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

std::vector<std::vector<std::size_t>> pack_for_lanes(std::span<const std::int64_t> costs,
                                                     std::int64_t cost_max,
                                                     std::int64_t lanes) {
  Batches few = pack_longest_first(costs, cost_max);
  if (lanes == 1 || few.empty()) return few;
  const std::vector<std::size_t> order = longest_first(costs);
  for (std::size_t count = whole_rounds(few.size(), lanes);;
       count = whole_rounds(count + 1, lanes)) {
    auto batches = pack_emptiest(costs, order, cost_max, std::min(count, order.size()));
    if (batches) return std::move(*batches);
  }
}

std::vector<double> in_row_order(std::span<const double> values,
                                 const std::vector<std::vector<std::size_t>>& micro_batches,
                                 std::span<const std::size_t> counts) {
  std::vector<std::span<const double>> by_row(counts.size());
  std::size_t next = 0;
  for (const auto& micro : micro_batches) {
    for (const std::size_t row : micro) {
      by_row[row] = values.subspan(next, counts[row]);
      next += counts[row];
    }
  }
  std::vector<double> ordered;
  for (const auto& own : by_row)
    ordered.insert(ordered.end(), own.begin(), own.end());
  return ordered;
}

}  // namespace troupe::learn
