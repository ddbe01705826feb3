// The register tile of a product: kRows rows times kPanels panels of sums, each one chain of fused
// multiply-adds. Defines how chains start (zero or C), continue, and end (bias, residual, C).
// gemm.hpp decides which tiles run when. Any thread; no state beyond the registers.
#pragma once

#include "kernels/cpu/math.hpp"
#include "kernels/shapes.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

// How a tile reads the lines of a panel (64 bytes, addressed as 16 floats) in each storage dtype. A
// line holds kDepth steps of k; column(line, i) returns the 16 numbers of its step i.
struct F32Lines {
  static constexpr int kDepth = 1;
  static Vec column(const float* line, int) { return Vec::load(line); }
  static Vec multiply_add(Vec x, Vec column, Vec sum) { return fma(x, column, sum); }
};
struct Bf16Lines {
  static constexpr int kDepth = 2;
  static Vec column(const float* line, int i) {
    if (i == 0) return Vec::first_bf16(line);
    asm("" : "+r"(line));  // forces a reload: AVX2 lacks the registers to keep the line
    return Vec::second_bf16(line);
  }
  static Vec multiply_add(Vec x, Vec column, Vec sum) { return fma(x, column, sum); }
};
struct Int8Lines {
  static constexpr int kDepth = 4;
  static Vec column(const float* line, int i) { return Vec::from_int8(line + i * kPanel / 4); }
  static Vec multiply_add(Vec x, Vec column, Vec sum) { return fma(x, column, sum); }
};

// What to prefetch while a tile multiplies: in each panel, from line `from` on, `step` / 2^16 lines
// per line multiplied. Prefetching a line twice costs less than a test to avoid it.
struct Prefetch {
  const float* from = nullptr;
  std::uint32_t step = 0;
  std::int64_t line_stride = kPanel;
  std::int64_t panel_stride = 0;
};

// The strides of A: element (r, i) is a[r * row + i * k].
struct StrideA {
  std::int64_t row, k;
};

template <int kRows, int kPanels>
struct Tile {
  Vec sum[kRows][kPanels];

  // Adds k products to every chain. Panels of B are `panel_stride` floats apart; `b` points to the
  // start of a line.
  template <class Lines, int kLocality>
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
    const auto step = [&](const float* a_k, const float* b_k, int i) [[gnu::always_inline]] {
      if constexpr (kRows == 1) {  // uses each column at once; none is held in a register
        const Vec x = Vec::all(a_k[0]);
#pragma GCC unroll 8
        for (int p = 0; p < kPanels; ++p)
          local[0][p] =
              Lines::multiply_add(x, Lines::column(b_k + p * panel_stride, i), local[0][p]);
        return;
      }
      Vec column[kPanels];
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p)
        column[p] = Lines::column(b_k + p * panel_stride, i);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Vec x = Vec::all(a_k[r * stride.row]);
#pragma GCC unroll 8
        for (int p = 0; p < kPanels; ++p)
          local[r][p] = Lines::multiply_add(x, column[p], local[r][p]);
      }
    };
    // Four steps of k per iteration, because loop arithmetic competes with multiply-adds for ports.
    std::uint64_t line = 0;
    constexpr int kLines = 4 / Lines::kDepth;
    const float* const four_end = b + k / 4 * kLines * kPanel;
    for (; b != four_end; a += 4 * stride.k, b += kLines * kPanel) {
      const float* fetch =
          prefetch.from + static_cast<std::int64_t>(line >> 16) * prefetch.line_stride;
      line += kLines * prefetch.step;
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        if (i % Lines::kDepth == 0)
#pragma GCC unroll 8
          for (int p = 0; p < kPanels; ++p)
            __builtin_prefetch(
                fetch + p * prefetch.panel_stride + i / Lines::kDepth * prefetch.line_stride, 0,
                kLocality);
        step(a + i * stride.k, b + i / Lines::kDepth * kPanel, i % Lines::kDepth);
      }
    }
    const std::int64_t rest = k % 4;
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i)
      if (i < rest) step(a + i * stride.k, b + i / Lines::kDepth * kPanel, i % Lines::kDepth);
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
        if (last && g.b.scale != nullptr) x = x * load(g.b.scale + column, mask);
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
