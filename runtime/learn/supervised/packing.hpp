// Packs the rows of an optimiser step into micro-batches: longest row first, each into the first
// micro-batch with room. This needs few micro-batches, and equal rows give equal plans. Pure.
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
