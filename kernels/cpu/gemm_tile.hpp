// The register tile of a product: kRows rows times kPanels panels of sums, each one chain of fused
// multiply-adds. How it starts (zero or C), goes on, and ends (bias, residual, C) is all here;
// gemm.hpp decides which tiles run when. Any thread; no state beyond the registers.
#pragma once

#include "kernels/cpu/math.hpp"
#include "kernels/shapes.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

// What to fetch while a tile multiplies: of each panel, lines from `from` on, `step` / 2^16 lines
// for every k. Fetching a line again costs little, deciding not to costs more.
struct Prefetch {
  const float* from = nullptr;
  std::uint32_t step = 0;
  std::int64_t line_stride = kPanel;
  std::int64_t panel_stride = 0;
};

// Where the tile finds A: element (r, k) is a[r * row_stride + k * k_stride].
struct StrideA {
  std::int64_t row, k;
};

template <int kRows, int kPanels>
struct Tile {
  Vec sum[kRows][kPanels];

  // Adds k products to every chain. Panels of B are `panel_stride` apart.
  template <int kLocality>
  [[gnu::always_inline]] void multiply(const float* a,
                                       StrideA stride,
                                       const float* b,
                                       std::int64_t panel_stride,
                                       std::int64_t k,
                                       Prefetch prefetch) {
    Vec local[kRows][kPanels];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p)
        local[r][p] = sum[r][p];
    const auto step = [&](const float* a_k, const float* b_k) [[gnu::always_inline]] {
      Vec column[kPanels];
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p)
        column[p] = Vec::load(b_k + p * panel_stride);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Vec x = Vec::all(a_k[r * stride.row]);
#pragma GCC unroll 8
        for (int p = 0; p < kPanels; ++p)
          local[r][p] = fma(x, column[p], local[r][p]);
      }
    };
    // Four at a time: integer work would take the ports of the multiply-adds.
    std::uint64_t line = 0;
    const float* const four_end = b + k / 4 * 4 * kPanel;
    const float* const end = b + k * kPanel;
    for (; b != four_end; a += 4 * stride.k, b += 4 * kPanel) {
      const float* fetch =
          prefetch.from + static_cast<std::int64_t>(line >> 16) * prefetch.line_stride;
      line += 4 * prefetch.step;
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 8
        for (int p = 0; p < kPanels; ++p)
          __builtin_prefetch(fetch + p * prefetch.panel_stride + i * prefetch.line_stride, 0,
                             kLocality);
        step(a + i * stride.k, b + i * kPanel);
      }
    }
    for (; b != end; a += stride.k, b += kPanel)
      step(a, b);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p)
        sum[r][p] = local[r][p];
  }

  template <class Function>
  [[gnu::always_inline]] void each(Function&& f) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p)
        f(r, p, sum[r][p]);
  }

  [[gnu::always_inline]] void start(const Gemm& g,
                                    std::int64_t row,
                                    std::int64_t panel,
                                    bool from_c) {
    each([&](int r, int p, Vec& x) {
      x = Vec::zero();
      if (!from_c) return;
      const std::int64_t column = (panel + p) * kPanel;
      const float* c = g.c + (row + r) * g.ldc + column;
      x = column + kPanel <= g.n ? Vec::load(c) : Vec::load(c, Mask::first(g.n - column));
    });
  }

  [[gnu::always_inline]] void finish(const Gemm& g,
                                     std::int64_t row,
                                     std::int64_t panel,
                                     bool last) {
    each([&](int r, int p, Vec& x) {
      const std::int64_t column = (panel + p) * kPanel;
      const auto write = [&](auto mask) {
        if (last && g.bias != nullptr) x = x + load(g.bias + column, mask);
        if (last && g.residual != nullptr)
          x = x + load(g.residual + (row + r) * g.ldr + column, mask);
        store(g.c + (row + r) * g.ldc + column, x, mask);
      };
      if (column + kPanel <= g.n) {
        write(Full{});
      } else {
        write(Mask::first(g.n - column));
      }
    });
  }
};

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
