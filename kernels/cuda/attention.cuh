// Paged attention (kernels/shapes.hpp: Attention).
#pragma once

#include "kernels/cuda/ops.cuh"

namespace troupe::kernels::cuda {

// `items` lies on the device. One grid does the items of one row (decoding), one the others; each
// skips the items of the other.
void attention_of_one_row(const Attention& a, const AttentionItem* items, std::int64_t count);
void attention_of_rows(const Attention& a, const AttentionItem* items, std::int64_t count);

// Heads of one row that attention_of_one_row takes; items with more go with those of many rows.
inline constexpr int kOneRowHeads = 16;
inline constexpr int kHeadDimLargest = 256;

}  // namespace troupe::kernels::cuda
