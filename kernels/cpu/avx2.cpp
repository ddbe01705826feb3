// The AVX2 level: register tiles for 16 registers of 8 lanes, then the shared sources.
#define TROUPE_KERNEL_LEVEL avx2

#include "kernels/cpu/vec_avx2.hpp"
#include "kernels/levels.hpp"

namespace troupe::kernels::avx2 {
namespace {

constexpr std::int64_t kDirectRows = 6;  // up to this many rows, A is not copied
constexpr int kAccumulators = 6;         // most sums in a tile of few rows, of sixteen lanes each
// Panels that a tile of this many rows multiplies at once.
constexpr int direct_panels(std::int64_t rows) {
  return rows == 1 ? 4 : rows <= 3 ? 2 : 1;
}
constexpr int kTileRows = 6;
constexpr int kTilePanels = 1;
constexpr int kDotRows = 6;
constexpr int kDotBlocks = 1;
constexpr int kValueRows = 6;
constexpr int kValueVecs = 1;
constexpr int kProbeChains = 6;

// AVX2 has no instruction for bfloat16 pairs, so this calls the reference.
void dot_gemm(const Gemm& g, Range rows, Range panels) {
  reference::kOps.gemm(g, rows, panels);
}

}  // namespace
}  // namespace troupe::kernels::avx2

#include "kernels/cpu/functions.hpp"
