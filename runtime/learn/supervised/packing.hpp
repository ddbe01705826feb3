// Packs the data rows of one optimiser step into few micro-batches (first-fit decreasing): longest
// row first, each into the first micro-batch that has room for it. A pure function of the lengths.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::learn {

// Returns the indices of the data rows in each micro-batch. costs[i] is the number of tokens of
// data row i that go through the model, at most `cost_max`. Rows of cost 0, which have no target,
// are left out.
std::vector<std::vector<std::size_t>> pack_longest_first(std::span<const std::int64_t> costs,
                                                         std::int64_t cost_max);

}  // namespace troupe::learn
