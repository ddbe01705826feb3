// Register tiles for 32 registers of 16 lanes: the sizes that the AVX-512 sources share. Included
// by them only.
#pragma once

#include <cstdint>

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

constexpr std::int64_t kDirectRows = 8;  // rows of A that go without a copy
constexpr int kAccumulators = 28;        // of sixteen lanes
constexpr int direct_panels(std::int64_t rows) {
  return rows <= 6 ? 4 : 3;
}
constexpr int kTileRows = 14;
constexpr int kTilePanels = 2;

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
