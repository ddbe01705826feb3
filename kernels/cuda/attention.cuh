// Declares the forms of paged attention on a device (kernels/shapes.hpp: Attention), and their
// limits.
#pragma once

#include "kernels/cuda/ops.cuh"

namespace troupe::kernels::cuda {

// Keys and values in f32: each launches a grid over all `items`, which are in device memory.
// attention_of_one_row does the items with one row (decoding), attention_of_rows the others; each
// skips the other's items.
void attention_of_one_row(const Attention& a, const AttentionItem* items, std::int64_t count);
void attention_of_rows(const Attention& a, const AttentionItem* items, std::int64_t count);
// Keys and values in bfloat16: all items.
void attention_in_splits(const Attention& a, const AttentionItem* items, std::int64_t count);

// The most heads that an item of one row may have; those with more are done as several rows are.
inline constexpr int kOneRowHeads = 16;
inline constexpr int kHeadDimLargest = 256;  // largest head_dim of all

}  // namespace troupe::kernels::cuda
