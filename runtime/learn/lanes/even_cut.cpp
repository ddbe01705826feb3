#include "runtime/learn/lanes/even_cut.hpp"

#include <algorithm>

namespace troupe::learn {
namespace {

// The end of the longest run from `begin` on that costs at most `cost_max`; at least one unit.
std::size_t run_end(std::size_t begin,
                    std::size_t units,
                    const RunCost& cost,
                    std::int64_t cost_max) {
  std::size_t end = begin + 1;
  while (end < units && cost({begin, end + 1}) <= cost_max)
    ++end;
  return end;
}

}  // namespace

std::size_t fewest_runs(std::size_t units, const RunCost& cost, std::int64_t cost_max) {
  std::size_t runs = 0;
  for (std::size_t begin = 0; begin < units; begin = run_end(begin, units, cost, cost_max))
    ++runs;
  return runs;
}

std::vector<UnitRun> even_cut(std::size_t units, const RunCost& cost, std::size_t runs) {
  std::vector<UnitRun> result;
  if (units == 0) return result;
  runs = std::min(runs, units);
  std::int64_t low = 0, high = cost({0, units});
  for (std::size_t unit = 0; unit < units; ++unit)
    low = std::max(low, cost({unit, unit + 1}));
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (fewest_runs(units, cost, middle) <= runs) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  for (std::size_t begin = 0; begin < units;) {
    // Leaves a unit for each run that is still to come.
    const std::size_t to_come = runs - result.size() - 1;
    const std::size_t end = std::min(run_end(begin, units, cost, low), units - to_come);
    result.push_back({begin, end});
    begin = end;
  }
  return result;
}

}  // namespace troupe::learn
