// C = A B over packed panels of 16 columns. Each output is one chain over k ascending held in a
// register, so tiles, blocks and the number of rows are free: they change the speed, never a bit.
//  - up to kDirectRows rows (decoding): A as it stands, several panels at once so that the chains hide
//    the latency of the multiply-add while B streams from memory once;
//  - more rows: tiles of at most kTileRows rows, copied beside each other for a block of k, against a
//    block of panels that stays in the second-level cache while all tiles pass over it. A chain that is
//    cut at the end of a block of k goes on from the stored partial sum, unrounded.
#pragma once

#include "kernels/cpu/math.hpp"
#include "kernels/shapes.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

constexpr std::int64_t kBlockK = 384;              // k of one copied tile of A
constexpr std::int64_t kStrideA = kBlockK + 16;    // its row stride; not a power of two
constexpr std::int64_t kBlockPanels = 64;          // most panels of one block
constexpr std::int64_t kPrefetchAhead = 24;        // rows of a panel (64 bytes each)

template <int kRows, int kPanels>
struct Tile {
  Vec sum[kRows][kPanels];

  // Adds k products to every chain. A has row stride `lda`; panels are `panel_stride` apart.
  template <bool kPrefetch>
  [[gnu::always_inline]] void multiply(const float* a, std::int64_t lda, const float* b,
                                       std::int64_t panel_stride, std::int64_t k) {
    Vec local[kRows][kPanels];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) local[r][p] = sum[r][p];
    for (std::int64_t i = 0; i < k; ++i) {
      Vec column[kPanels];
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) {
        const float* at = b + p * panel_stride + i * kPanel;
        if constexpr (kPrefetch) __builtin_prefetch(at + kPrefetchAhead * kPanel);
        column[p] = Vec::load(at);
      }
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Vec x = Vec::all(a[r * lda + i]);
#pragma GCC unroll 8
        for (int p = 0; p < kPanels; ++p) local[r][p] = fma(x, column[p], local[r][p]);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) sum[r][p] = local[r][p];
  }

  template <class Function>
  [[gnu::always_inline]] void each(Function&& f) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) f(r, p, sum[r][p]);
  }

  [[gnu::always_inline]] void start(const Gemm& g, std::int64_t row, std::int64_t panel) {
    each([&](int r, int p, Vec& x) {
      x = Vec::zero();
      if (!g.accumulate) return;
      const std::int64_t column = (panel + p) * kPanel;
      const float* c = g.c + (row + r) * g.ldc + column;
      x = column + kPanel <= g.n ? Vec::load(c) : Vec::load(c, Mask::first(g.n - column));
    });
  }

  [[gnu::always_inline]] void finish(const Gemm& g, std::int64_t row, std::int64_t panel) {
    each([&](int r, int p, Vec& x) {
      const std::int64_t column = (panel + p) * kPanel;
      const auto write = [&](auto mask) {
        if (g.bias != nullptr) x = x + load(g.bias + column, mask);
        if (g.residual != nullptr)
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

// ---- few rows -------------------------------------------------------------------------------------

template <int kRows, int kPanels>
[[gnu::noinline]] void direct_tile(const Gemm& g, std::int64_t row, std::int64_t panel) {
  Tile<kRows, kPanels> tile;
  tile.start(g, row, panel);
  tile.template multiply<true>(g.a + row * g.lda, g.lda, g.b + panel * g.k * kPanel, g.k * kPanel,
                               g.k);
  tile.finish(g, row, panel);
}

template <int kRows>
void direct(const Gemm& g, std::int64_t row, std::int64_t panel, std::int64_t panel_end) {
  constexpr int kWide = direct_panels(kRows);
  for (; panel + kWide <= panel_end; panel += kWide) direct_tile<kRows, kWide>(g, row, panel);
  for (; panel < panel_end; ++panel) direct_tile<kRows, 1>(g, row, panel);
}

template <int kRows = 1>
void direct_rows(const Gemm& g, std::int64_t rows, std::int64_t row, std::int64_t panel,
                 std::int64_t panel_end) {
  if (rows == kRows) return direct<kRows>(g, row, panel, panel_end);
  if constexpr (kRows < kDirectRows)
    direct_rows<kRows + 1>(g, rows, row, panel, panel_end);
}

// ---- many rows ------------------------------------------------------------------------------------

// One tile of rows against one block of panels, over the whole of g.k.
struct RowTile {
  const Gemm& g;
  const std::int64_t row, panel_begin, panel_end;
  alignas(64) float a[kTileRows * kStrideA];
  alignas(64) float partial[kTileRows * kBlockPanels * kPanel];

  RowTile(const Gemm& gemm, std::int64_t first_row, std::int64_t begin, std::int64_t end)
      : g(gemm), row(first_row), panel_begin(begin), panel_end(end) {}

  void copy_a(std::int64_t rows, std::int64_t k_begin, std::int64_t k) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* from = g.a + (row + r) * g.lda + k_begin;
      float* to = a + r * kStrideA;
      for_lanes(k, [&](std::int64_t i, auto mask) { store(to + i, load(from + i, mask), mask); });
    }
  }

  template <int kRows, int kPanels>
  [[gnu::noinline]] void block(std::int64_t panel, std::int64_t k_begin, std::int64_t k) {
    Tile<kRows, kPanels> tile;
    float* part = partial + (panel - panel_begin) * kTileRows * kPanel;
    if (k_begin == 0) {
      tile.start(g, row, panel);
    } else {
      tile.each([&](int r, int p, Vec& x) { x = Vec::load(part + (p * kTileRows + r) * kPanel); });
    }
    tile.template multiply<false>(a, kStrideA, g.b + (panel * g.k + k_begin) * kPanel,
                                  g.k * kPanel, k);
    if (k_begin + k == g.k) {
      tile.finish(g, row, panel);
    } else {
      tile.each([&](int r, int p, Vec& x) { x.store(part + (p * kTileRows + r) * kPanel); });
    }
  }

  template <int kRows>
  void run() {
    for (std::int64_t k_begin = 0; k_begin < g.k; k_begin += kBlockK) {
      const std::int64_t k = smaller(kBlockK, g.k - k_begin);
      copy_a(kRows, k_begin, k);
      std::int64_t panel = panel_begin;
      for (; panel + kTilePanels <= panel_end; panel += kTilePanels)
        block<kRows, kTilePanels>(panel, k_begin, k);
      for (; panel < panel_end; ++panel) block<kRows, 1>(panel, k_begin, k);
    }
  }
};

template <int kRows = kTileRows>
void run_rows(RowTile& tile, std::int64_t rows) {
  if (rows == kRows) return tile.template run<kRows>();
  if constexpr (kRows > 1) run_rows<kRows - 1>(tile, rows);
}

void blocked(const Gemm& g, std::int64_t m_begin, std::int64_t m_end, std::int64_t panel_begin,
             std::int64_t panel_end) {
  std::int64_t panels = kCacheBytes / (g.k * kPanel * 4) / kTilePanels * kTilePanels;
  panels = panels < 4 ? 4 : smaller(panels, kBlockPanels);
  const std::int64_t tiles = (m_end - m_begin + kTileRows - 1) / kTileRows;
  for (std::int64_t panel = panel_begin; panel < panel_end; panel += panels) {
    for (std::int64_t t = 0; t < tiles; ++t) {
      const std::int64_t row = m_begin + (m_end - m_begin) * t / tiles;
      const std::int64_t row_end = m_begin + (m_end - m_begin) * (t + 1) / tiles;
      RowTile tile(g, row, panel, smaller(panel + panels, panel_end));
      run_rows(tile, row_end - row);
    }
  }
}

void gemm(const Gemm& g, std::int64_t m_begin, std::int64_t m_end, std::int64_t panel_begin,
          std::int64_t panel_end) {
  const std::int64_t rows = m_end - m_begin;
  if (rows <= 0 || panel_begin >= panel_end) return;
  if (rows <= kDirectRows || g.k == 0) {
    for (std::int64_t row = m_begin; row < m_end; row += kDirectRows)
      direct_rows(g, smaller(kDirectRows, m_end - row), row, panel_begin, panel_end);
    return;
  }
  blocked(g, m_begin, m_end, panel_begin, panel_end);
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
