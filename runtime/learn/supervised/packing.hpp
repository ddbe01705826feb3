// Packs the data rows of one optimiser step into few micro-batches, longest row first. A pure
// function of the lengths and the number of lanes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::learn {

// Returns the indices of the data rows in each micro-batch. costs[i] is the number of tokens of
// data row i that go through the model, at most `cost_max`. Rows of cost 0, which have no target,
// are left out. Each row goes into the first micro-batch that has room for it (first-fit
// decreasing).
std::vector<std::vector<std::size_t>> pack_longest_first(std::span<const std::int64_t> costs,
                                                         std::int64_t cost_max);

// Packs for several lanes: a multiple of `lanes` micro-batches, and each row goes into the one
// that is emptiest. Where there are fewer rows than that, each is a micro-batch of its own. With
// one lane, pack_longest_first.
std::vector<std::vector<std::size_t>> pack_for_lanes(std::span<const std::int64_t> costs,
                                                     std::int64_t cost_max,
                                                     std::int64_t lanes);

// Values that were computed micro-batch by micro-batch, back in the order of the data rows, of
// which row i has counts[i] values.
std::vector<double> in_row_order(std::span<const double> values,
                                 const std::vector<std::vector<std::size_t>>& micro_batches,
                                 std::span<const std::size_t> counts);

}  // namespace troupe::learn
