// Cuts a row of units into runs of neighbours of nearly equal cost: how the micro-batches of a step
// get about equally much work for each lane. Pure functions of the costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace troupe::learn {

// Units [begin, end).
struct UnitRun {
  std::size_t begin = 0, end = 0;
  friend bool operator==(const UnitRun&, const UnitRun&) = default;
};

// The cost of a run that is not empty; a longer run costs at least as much as a part of it.
using RunCost = std::function<std::int64_t(UnitRun)>;

// The fewest runs of cost at most `cost_max` that `units` units can be cut into. No unit costs
// more.
std::size_t fewest_runs(std::size_t units, const RunCost& cost, std::int64_t cost_max);

// Exactly min(runs, units) runs, whose largest cost is as small as it can be; the first ones take
// as many units as that allows. `runs` is at least 1.
std::vector<UnitRun> even_cut(std::size_t units, const RunCost& cost, std::size_t runs);

// The least multiple of `lanes` that is at least `count`.
constexpr std::size_t whole_rounds(std::size_t count, std::int64_t lanes) {
  const auto size = static_cast<std::size_t>(lanes);
  return (count + size - 1) / size * size;
}

}  // namespace troupe::learn
