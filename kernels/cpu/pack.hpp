// Copies of operands: plain matrices to f32 panels, transposition, rows to KV slots, and back
// (kv_gather, which sums a row's slots).
#pragma once

#include "kernels/cpu/math.hpp"
#include "kernels/shapes.hpp"

#include <immintrin.h>

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

// y[c][r] = x[r][c] for 8 x 8 numbers.
[[gnu::always_inline]] inline void transpose_8x8(const float* x,
                                                 std::int64_t ldx,
                                                 float* y,
                                                 std::int64_t ldy) {
  __m256 row[8], pair[8], quad[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i)
    row[i] = _mm256_loadu_ps(x + i * ldx);
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_ps(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_ps(row[i], row[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    quad[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44);
    quad[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0xee);
    quad[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
    quad[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(y + i * ldy, _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x20));
    _mm256_storeu_ps(y + (i + 4) * ldy, _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x31));
  }
}

// y[c][r] = x[r][c] for any number of rows and columns.
inline void transpose_block(const float* x,
                            std::int64_t ldx,
                            std::int64_t rows,
                            std::int64_t columns,
                            float* y,
                            std::int64_t ldy) {
  const std::int64_t rows_of_8 = rows / 8 * 8;
  const std::int64_t columns_of_8 = columns / 8 * 8;
  for (std::int64_t c = 0; c < columns_of_8; c += 8)  // completes a line of y at once
    for (std::int64_t r = 0; r < rows_of_8; r += 8)
      transpose_8x8(x + r * ldx + c, ldx, y + c * ldy + r, ldy);
  for (std::int64_t c = columns_of_8; c < columns; ++c)
    for (std::int64_t r = 0; r < rows_of_8; ++r)
      y[c * ldy + r] = x[r * ldx + c];
  for (std::int64_t r = rows_of_8; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      y[c * ldy + r] = x[r * ldx + c];
}

void pack_plain(const Pack& p, Range panels) {
  const float* const x = p.from;
  float* const room = p.to.f32();
  const std::int64_t ldx = p.ldf, n = p.n, k = p.k;
  constexpr std::int64_t kRows = 64;  // rows at a time, so that their pages stay in the TLB
  for (std::int64_t begin = 0; begin < k; begin += kRows) {
    const std::int64_t end = smaller(k, begin + kRows);
    for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const std::int64_t column = panel * kPanel;
      const Mask mask = Mask::first(n - column);
      float* to = room + panel * k * kPanel;
      for (std::int64_t i = begin; i < end; ++i)
        Vec::load(x + i * ldx + column, mask).store(to + i * kPanel);
    }
  }
}

void kv_write(const KvWrite& w, Range rows) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    for (std::int32_t s = w.slot_begin[row]; s < w.slot_begin[row + 1]; ++s) {
      const std::int64_t block = w.slots[s] / kKvBlock;
      const std::int64_t place = w.slots[s] % kKvBlock;
      for (std::int64_t head = 0; head < w.kv_heads; ++head) {
        const float* k = w.k + row * w.ldk + head * w.head_dim;
        const float* v = w.v + row * w.ldv + head * w.head_dim;
        const std::int64_t base = (block * w.kv_heads + head) * w.head_dim * kKvBlock;
        float* to_k = w.k_pool.f32() + base + place;
        float* to_v = w.v_pool.f32() + base + place * w.head_dim;
        for (std::int64_t d = 0; d < w.head_dim; ++d)
          to_k[d * kKvBlock] = k[d];
        for_lanes(w.head_dim,
                  [&](std::int64_t d, auto mask) { store(to_v + d, load(v + d, mask), mask); });
      }
    }
  }
}

void kv_gather(const KvWrite& w, Range rows) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    for (std::int64_t head = 0; head < w.kv_heads; ++head) {
      float* k = w.k + row * w.ldk + head * w.head_dim;
      float* v = w.v + row * w.ldv + head * w.head_dim;
      for (std::int64_t d = 0; d < w.head_dim; ++d)
        k[d] = v[d] = 0.0f;
      for (std::int32_t s = w.slot_begin[row]; s < w.slot_begin[row + 1]; ++s) {
        const std::int64_t block = w.slots[s] / kKvBlock;
        const std::int64_t place = w.slots[s] % kKvBlock;
        const std::int64_t base = (block * w.kv_heads + head) * w.head_dim * kKvBlock;
        for (std::int64_t d = 0; d < w.head_dim; ++d) {
          k[d] = k[d] + w.k_pool.f32()[base + d * kKvBlock + place];
          v[d] = v[d] + w.v_pool.f32()[base + place * w.head_dim + d];
        }
      }
    }
  }
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
