// The sizes of the register tiles of matrix products, for 32 registers of 16 lanes. Included only
// by the AVX-512 sources.
#pragma once

#include <cstdint>

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

constexpr std::int64_t kDirectRows = 8;  // up to this many rows, A is not copied
constexpr int kAccumulators = 28;        // most sums in a tile of few rows, of sixteen lanes each
// Panels that a tile of this many rows multiplies at once.
constexpr int direct_panels(std::int64_t rows) {
  return rows <= 6 ? 4 : 3;
}
constexpr int kTileRows = 14;
constexpr int kTilePanels = 2;

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
