#include "runtime/plan/memory_use.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace troupe::plan {

Kind MemoryUse::largest() const {
  const auto most = std::max_element(device_.begin(), device_.end());
  return static_cast<Kind>(std::distance(device_.begin(), most));
}

std::int64_t MemoryUse::sum(const Amounts& amounts) {
  return std::accumulate(amounts.begin(), amounts.end(), std::int64_t{0});
}

}  // namespace troupe::plan
