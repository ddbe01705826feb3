// Paged attention (kernels/shapes.hpp: Attention).
#pragma once

#include "kernels/cuda/ops.cuh"

namespace troupe::kernels::cuda {

// `items` is in device memory. One grid does the items of one row (decoding), the other those of
// many; each skips the other's items.
void attention_of_one_row(const Attention& a, const AttentionItem* items, std::int64_t count);
void attention_of_rows(const Attention& a, const AttentionItem* items, std::int64_t count);

// The most heads that attention_of_one_row handles. Items with more go to attention_of_rows.
inline constexpr int kOneRowHeads = 16;
inline constexpr int kHeadDimLargest = 256;

}  // namespace troupe::kernels::cuda
