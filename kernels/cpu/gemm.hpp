// C = A B over packed panels of 16 columns. Each output is one chain over ascending k, held in a
// register. Tiles, blocks and the number of rows therefore affect speed, never a bit.
//  - Up to kDirectRows rows (decoding): A is read in place. Several panels at once hide the latency
//    of the multiply-add, while B streams from memory once.
//  - More rows: a block of A (kTiles tiles of kTileRows rows, kBlockK deep) is copied to the stack
//    (530 kB at most) and stays in the L2 cache. A sliver of B (kTilePanels panels of the block's
//    k) is multiplied with all tiles while the next one is prefetched at an even rate. A chain that
//    is cut at the end of a block of k continues from C, unrounded.
//  - Operands of the backward pass: A by columns is copied to tiles in which the rows of one k are
//    adjacent (nothing is transposed); plain B is copied sliver by sliver (74 kB).
#pragma once

#include "kernels/cpu/gemm_tile.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

constexpr std::int64_t kBlockK = 576;            // depth of one copied block of A; whole lines
constexpr std::int64_t kStrideA = kBlockK + 16;  // row stride of the block; not a power of two
constexpr std::int64_t kTiles = 16;              // maximum number of tiles in one block of A

// Floats of one panel.
template <class Lines>
std::int64_t panel_size(std::int64_t k) {
  return (k + Lines::kDepth - 1) / Lines::kDepth * kPanel;
}

// ---- few rows ----

constexpr std::int64_t kAhead = 24;  // prefetch distance in lines of a panel

template <class Lines, int kRows, int kPanels>
[[gnu::noinline]] void direct_tile(const Gemm& g, std::int64_t row, std::int64_t panel) {
  const float* a = g.a + row * g.lda;
  const std::int64_t stride = panel_size<Lines>(g.k);
  const float* b = g.b.f32() + panel * stride;
  constexpr std::int64_t kAheadK = kAhead * Lines::kDepth;
  const std::int64_t body = g.k > kAheadK ? (g.k - kAheadK) / 4 * 4 : 0;
  Tile<kRows, kPanels> tile;
  tile.start(g, row, panel, g.accumulate);
  // The last lines prefetch the start of the next panels.
  for (std::int64_t begin = 0; begin < g.k;) {
    const std::int64_t end = begin < body ? body : g.k;
    const float* from = begin < body ? b + kAhead * kPanel : b + kPanels * stride;
    tile.template multiply<Lines, 3>(a + begin, {g.lda, 1}, b + begin / Lines::kDepth * kPanel,
                                     stride, end - begin, {from, 1u << 16, kPanel, stride});
    begin = end;
  }
  tile.finish(g, row, panel, true);
}

template <class Lines, int kPanels, int kRows>
void direct_rows(const Gemm& g, std::int64_t rows, std::int64_t row, std::int64_t panel) {
  if constexpr (kRows * kPanels <= kAccumulators)
    if (rows == kRows) return direct_tile<Lines, kRows, kPanels>(g, row, panel);
  if constexpr (kRows > 1) direct_rows<Lines, kPanels, kRows - 1>(g, rows, row, panel);
}

// Does all rows of one group of panels before the next group. Returns the first panel that is left.
template <class Lines, int kPanels>
std::int64_t direct_groups(const Gemm& g,
                           std::int64_t m_begin,
                           std::int64_t m_end,
                           std::int64_t panel,
                           std::int64_t panel_end) {
  for (; panel + kPanels <= panel_end; panel += kPanels)
    for (std::int64_t row = m_begin; row < m_end; row += kDirectRows)
      direct_rows<Lines, kPanels, kDirectRows>(g, smaller(kDirectRows, m_end - row), row, panel);
  return panel;
}

template <class Lines>
void direct(const Gemm& g,
            std::int64_t m_begin,
            std::int64_t m_end,
            std::int64_t panel,
            std::int64_t panel_end) {
  const int wide = direct_panels(m_end - m_begin);
  if (wide == 8) panel = direct_groups<Lines, 8>(g, m_begin, m_end, panel, panel_end);
  if (wide == 4) panel = direct_groups<Lines, 4>(g, m_begin, m_end, panel, panel_end);
  if (wide == 3) panel = direct_groups<Lines, 3>(g, m_begin, m_end, panel, panel_end);
  if (wide == 2) panel = direct_groups<Lines, 2>(g, m_begin, m_end, panel, panel_end);
  direct_groups<Lines, 1>(g, m_begin, m_end, panel, panel_end);
}

// ---- many rows ----

// A block of A, copied tile by tile, to be multiplied with all panels of the call.
template <class Lines, bool kByColumns>
struct BlockA {
  alignas(64) float a[kTiles * kTileRows * kStrideA];
  alignas(64) float b[kBlockK * kTilePanels * kPanel];  // a sliver of plain B
  std::int64_t first_row = 0, tiles = 0, rows = 0, k_begin = 0, k = 0;
  std::int64_t tile_begin[kTiles + 1] = {};  // in rows of the block

  void set_rows(std::int64_t begin, std::int64_t end) {
    first_row = begin;
    rows = end - begin;
    tiles = (rows + kTileRows - 1) / kTileRows;
    for (std::int64_t tile = 0; tile <= tiles; ++tile)
      tile_begin[tile] = rows * tile / tiles;
  }

  void copy(const Gemm& g) {
    if constexpr (kByColumns) return copy_columns(g);
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* from = g.a + (first_row + r) * g.lda + k_begin;
      float* to = a + r * kStrideA;
      for_lanes(k, [&](std::int64_t i, auto mask) { store(to + i, load(from + i, mask), mask); });
    }
  }

  // Copies tile after tile as [k][kTileRows]. A store writes sixteen numbers; the surplus goes to
  // the place of the next k, which is written later, or beyond the last.
  void copy_columns(const Gemm& g) {
    static_assert(kTileRows <= 16 && (kStrideA - kBlockK) * kTileRows >= 16);
    for (std::int64_t i = 0; i < k; ++i) {
      const float* from = g.a + (k_begin + i) * g.lda + first_row;
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        const std::int64_t begin = tile_begin[tile];
        const Mask mask = Mask::first(tile_begin[tile + 1] - begin);
        Vec::load(from + begin, mask).store(a + (tile * kStrideA + i) * kTileRows);
      }
    }
  }

  template <int kPanels>
  void copy_sliver(const Gemm& g, std::int64_t panel) {
    const std::int64_t column = panel * kPanel;
    const float* from = g.b.f32() + k_begin * g.ldb + column;
    const Mask last = Mask::first(g.n - column - (kPanels - 1) * kPanel);
    for (std::int64_t i = 0; i < k; ++i)
      for (int p = 0; p < kPanels; ++p) {
        const float* line = from + i * g.ldb + p * kPanel;
        (p + 1 < kPanels ? Vec::load(line) : Vec::load(line, last)).store(b + (p * k + i) * kPanel);
      }
  }

  template <int kRows, int kPanels>
  [[gnu::noinline]] void block(const Gemm& g, std::int64_t tile, std::int64_t panel) const {
    const std::int64_t row = first_row + tile_begin[tile];
    const bool plain = g.ldb > 0;
    const std::int64_t stride = plain ? k * kPanel : panel_size<Lines>(g.k);
    const float* const panels =
        plain ? b : g.b.f32() + panel * stride + k_begin / Lines::kDepth * kPanel;
    // The tiles together prefetch the next panels' lines for these k once.
    const std::int64_t line = k / Lines::kDepth * tile / tiles;
    const auto step = static_cast<std::uint32_t>((1u << 16) / tiles);
    const Prefetch next =
        plain ? Prefetch{g.b.f32() + (k_begin + line) * g.ldb + (panel + kPanels) * kPanel, step,
                         g.ldb, kPanel}
              : Prefetch{panels + kPanels * stride + line * kPanel, step, kPanel, stride};
    Tile<kRows, kPanels> sum;
    sum.start(g, row, panel, k_begin > 0 || g.accumulate);
    if (tile + 1 < tiles)
      for (std::int64_t r = 0; r < kRows; ++r)
        for (int p = 0; p < kPanels; ++p)
          __builtin_prefetch(g.c + (row + kRows + r) * g.ldc + (panel + p) * kPanel, 1);
    if constexpr (kByColumns) {
      sum.template multiply<Lines, 2>(a + tile * kStrideA * kTileRows, {1, kTileRows}, panels,
                                      stride, k, next);
    } else {
      sum.template multiply<Lines, 2>(a + tile_begin[tile] * kStrideA, {kStrideA, 1}, panels,
                                      stride, k, next);
    }
    sum.finish(g, row, panel, k_begin + k == g.k);
  }

  template <int kPanels, int kRows>
  void block_rows(const Gemm& g, std::int64_t tile, std::int64_t panel) const {
    if (tile_begin[tile + 1] - tile_begin[tile] == kRows)
      return block<kRows, kPanels>(g, tile, panel);
    if constexpr (kRows > 1) block_rows<kPanels, kRows - 1>(g, tile, panel);
  }

  template <int kPanels>
  std::int64_t slivers(const Gemm& g, std::int64_t panel, std::int64_t panel_end) {
    for (; panel + kPanels <= panel_end; panel += kPanels) {
      if (g.ldb > 0) copy_sliver<kPanels>(g, panel);
      for (std::int64_t tile = 0; tile < tiles; ++tile)
        block_rows<kPanels, kTileRows>(g, tile, panel);
    }
    return panel;
  }
};

template <class Lines, bool kByColumns>
void blocked(const Gemm& g, Range rows, Range panels) {
  const auto [m_begin, m_end] = rows;
  const auto [panel_begin, panel_end] = panels;
  constexpr std::int64_t kRowsMax = kTiles * kTileRows;
  const std::int64_t row_blocks = (m_end - m_begin + kRowsMax - 1) / kRowsMax;
  const std::int64_t k_blocks = g.k > 0 ? (g.k + kBlockK - 1) / kBlockK : 1;
  const std::int64_t fours = (g.k + 3) / 4;  // so that blocks start at a line
  BlockA<Lines, kByColumns> block;
  for (std::int64_t i = 0; i < row_blocks; ++i) {
    block.set_rows(m_begin + (m_end - m_begin) * i / row_blocks,
                   m_begin + (m_end - m_begin) * (i + 1) / row_blocks);
    for (std::int64_t j = 0; j < k_blocks; ++j) {
      block.k_begin = fours * j / k_blocks * 4;
      block.k = smaller(fours * (j + 1) / k_blocks * 4, g.k) - block.k_begin;
      block.copy(g);
      const std::int64_t rest = block.template slivers<kTilePanels>(g, panel_begin, panel_end);
      if (rest < panel_end) block.template slivers<1>(g, rest, panel_end);
    }
  }
}

bool residual_is_output(const Gemm& g) {
  return g.residual != nullptr && g.residual < g.c + g.m * g.ldc && g.c < g.residual + g.m * g.ldr;
}

template <class Lines>
void packed_gemm(const Gemm& g, Range rows, Range panels) {
  // Partial sums may be stored in C only if C does not also hold the residual.
  const bool whole_chains = g.k > kBlockK && residual_is_output(g);
  if (rows.size() <= kDirectRows || g.k == 0 || whole_chains) {
    direct<Lines>(g, rows.begin, rows.end, panels.begin, panels.end);
  } else {
    blocked<Lines, false>(g, rows, panels);
  }
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
