// Which rows of an optimiser step go through the model together: longest first into the first
// micro-batch that has room, so that few are needed and the same rows give the same plan. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::learn {

// Indices by micro-batch. `costs`: plan rows of each, none above `cost_max`; those of cost 0 (a row
// without a target) are left out.
std::vector<std::vector<std::size_t>> pack_longest_first(std::span<const std::int64_t> costs,
                                                         std::int64_t cost_max);

}  // namespace troupe::learn
