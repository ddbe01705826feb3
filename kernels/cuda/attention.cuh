// Paged attention (kernels/shapes.hpp: Attention).
#pragma once

#include "kernels/cuda/ops.cuh"

namespace troupe::kernels::cuda {

// `items` on the device. One grid for items of one row (decoding), one for the others; each passes
// by what is the other's.
void attention_of_one_row(const Attention& a, const AttentionItem* items, std::int64_t count);
void attention_of_rows(const Attention& a, const AttentionItem* items, std::int64_t count);

// Heads of one row that attention_of_one_row takes; items with more go with those of many rows.
inline constexpr int kOneRowHeads = 16;
inline constexpr int kHeadDimLargest = 256;

}  // namespace troupe::kernels::cuda
