// The AVX-512 level: register tiles for 32 registers of 16 lanes, then the shared sources.
#define TROUPE_KERNEL_LEVEL avx512

#include "kernels/cpu/avx512.hpp"

#include "kernels/cpu/vec_avx512.hpp"

namespace troupe::kernels::avx512 {
namespace {

constexpr std::int64_t kDirectRows = 8;  // rows of A that go without a copy
constexpr int kAccumulators = 28;        // of sixteen lanes
constexpr int direct_panels(std::int64_t rows) {
  return rows <= 2 ? 8 : rows <= 6 ? 4 : 3;
}
constexpr int kTileRows = 14;
constexpr int kTilePanels = 2;
constexpr int kDotRows = 6;
constexpr int kDotBlocks = 4;
constexpr int kValueRows = 6;
constexpr int kValueVecs = 4;
constexpr int kProbeChains = 12;

}  // namespace
}  // namespace troupe::kernels::avx512

#include "kernels/cpu/table.hpp"

namespace troupe::kernels::avx512 {

constinit const Ops kOps = make_table("avx512");

}  // namespace troupe::kernels::avx512
