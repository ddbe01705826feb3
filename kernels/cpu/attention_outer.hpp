// The products of the attention gradient summed over query rows: the gradients of keys (dk) and of
// values (dv). Each number is one chain over ascending rows. Any thread; no state.
#pragma once

#include "kernels/cpu/math.hpp"
#include "kernels/shapes.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

constexpr int kOuterKeys = 4;  // keys of one register tile of dk or dv

// grad[key][d ...] += chain over rows [begin, end) of weight[row][key] * x[row][d ...], for
// kOuterKeys keys and kVecs vectors of dimensions, the last one under `mask`.
template <int kVecs, class LastMask>
[[gnu::noinline]] void outer(const float* weight,
                             const float* const* x,
                             std::int64_t d,
                             int begin,
                             int end,
                             float* grad,
                             std::int64_t head_dim,
                             LastMask mask) {
  Vec sum[kOuterKeys][kVecs];
#pragma GCC unroll 8
  for (int i = 0; i < kOuterKeys; ++i)
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) {
      const float* from = grad + i * head_dim + d + c * 16;
      sum[i][c] = c + 1 < kVecs ? Vec::load(from) : load(from, mask);
    }
  for (int row = begin; row < end; ++row) {
    const float* values = x[row] + d;
    Vec lanes[kVecs];
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c)
      lanes[c] = c + 1 < kVecs ? Vec::load(values + c * 16) : load(values + c * 16, mask);
#pragma GCC unroll 8
    for (int i = 0; i < kOuterKeys; ++i) {
      const Vec w = Vec::all(weight[row * kAttentionBlock + i]);
#pragma GCC unroll 8
      for (int c = 0; c < kVecs; ++c)
        sum[i][c] = fma(w, lanes[c], sum[i][c]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kOuterKeys; ++i)
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) {
      float* to = grad + i * head_dim + d + c * 16;
      if (c + 1 < kVecs) {
        sum[i][c].store(to);
      } else {
        store(to, sum[i][c], mask);
      }
    }
}

// Adds to the gradient of the 16 keys (or values) of one KV block, from rows [begin, end) of the
// tile.
inline void add_outer(const float* weight,
                      const float* const* x,
                      int begin,
                      int end,
                      float* grad,
                      std::int64_t head_dim) {
  for (std::int64_t key = 0; key < kKvBlock; key += kOuterKeys) {
    const float* w = weight + key;
    float* to = grad + key * head_dim;
    std::int64_t d = 0;
    for (; d + kValueVecs * 16 <= head_dim; d += kValueVecs * 16)
      outer<kValueVecs>(w, x, d, begin, end, to, head_dim, Full{});
    for (; d + 16 <= head_dim; d += 16)
      outer<1>(w, x, d, begin, end, to, head_dim, Full{});
    if (d < head_dim) outer<1>(w, x, d, begin, end, to, head_dim, Mask::first(head_dim - d));
  }
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
