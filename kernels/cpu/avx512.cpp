// The AVX-512 level: register tiles for 32 registers of 16 lanes, then the shared sources.
#define TROUPE_KERNEL_LEVEL avx512

#include "kernels/cpu/avx512_bf16.hpp"
#include "kernels/cpu/tiles_avx512.hpp"
#include "kernels/cpu/vec_avx512.hpp"
#include "kernels/levels.hpp"

namespace troupe::kernels::avx512 {
namespace {

constexpr int kDotRows = 6;
constexpr int kDotBlocks = 4;
constexpr int kValueRows = 6;
constexpr int kValueVecs = 4;
constexpr int kProbeChains = 12;

// Products of bfloat16 pairs. Uses the processor's instruction if it exists and a row of pairs fits
// the buffer; else the reference.
void dot_gemm(const Gemm& g, Range rows, Range panels) {
  const bool fits = g.k <= 2 * avx512_bf16::kPairs_max;
  const auto gemm = fits && avx512_bf16::available() ? avx512_bf16::dot_gemm : reference::kOps.gemm;
  gemm(g, rows, panels);
}

}  // namespace
}  // namespace troupe::kernels::avx512

#include "kernels/cpu/functions.hpp"
