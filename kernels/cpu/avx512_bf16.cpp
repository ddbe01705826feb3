// Products of bfloat16 pairs. Each call rounds rows of A to pairs once. Then a pair is broadcast
// and multiplied into lines of B like a single number, so tiles and blocks are those of f32.
#define TROUPE_KERNEL_LEVEL avx512_bf16

#include "kernels/cpu/avx512_bf16.hpp"

#include "kernels/cpu/tiles_avx512.hpp"
#include "kernels/cpu/vec_avx512.hpp"

namespace troupe::kernels::avx512_bf16 {
namespace {

// A line holds 16 columns of one pair of k; "k" counts pairs.
struct PairLines {
  static constexpr int kDepth = 1;
  static Vec column(const float* line, int) { return Vec::load(line); }
  // In each lane: sum = fma(second of x, second of column, sum), then the same with the first.
  static Vec multiply_add(Vec x, Vec column, Vec sum) {
    return {_mm512_dpbf16_ps(sum.r, reinterpret_cast<__m512bh>(x.r),
                             reinterpret_cast<__m512bh>(column.r))};
  }
};

}  // namespace
}  // namespace troupe::kernels::avx512_bf16

#include "kernels/cpu/gemm.hpp"

namespace troupe::kernels::avx512_bf16 {
namespace {

// Rows of A as pairs of bfloat16, with denormals flushed to zero.
struct Pairs {
  alignas(64) float data[kPairs_max + 64];

  void fill(const Gemm& g, std::int64_t row, std::int64_t rows, std::int64_t stride) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* from = g.a + (row + r) * g.lda;
      float* to = data + r * stride;
      for (std::int64_t i = 0; i < g.k; i += 32) {
        const __m512 low = Vec::load(from + i, Mask::first(g.k - i)).r;
        const std::int64_t left = g.k - i - 16;
        const __m512 high =
            left > 0 ? Vec::load(from + i + 16, Mask::first(left)).r : _mm512_setzero_ps();
        _mm512_storeu_si512(to + i / 2, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
      }
    }
  }
};

}  // namespace

bool available() noexcept {
  return __builtin_cpu_supports("avx512bf16");
}

void dot_gemm(const Gemm& g, Range all, Range panels) {
  if (all.empty() || panels.empty()) return;
  const std::int64_t pairs = (g.k + 1) / 2;
  const std::int64_t stride = (pairs + 15) / 16 * 16 + (pairs > 64 ? 16 : 0);
  const std::int64_t at_once = stride > 0 ? kPairs_max / stride : all.size();
  Pairs a;
  for (std::int64_t row = all.begin; row < all.end;) {
    const std::int64_t rows = smaller(all.end - row, at_once > 0 ? at_once : 1);
    a.fill(g, row, rows, stride);
    Gemm part = g;
    part.a = a.data;
    part.lda = stride;
    part.k = pairs;
    part.m = rows;
    part.c = g.c + row * g.ldc;
    if (g.residual != nullptr) part.residual = g.residual + row * g.ldr;
    packed_gemm<PairLines>(part, {0, rows}, panels);
    row += rows;
  }
}

}  // namespace troupe::kernels::avx512_bf16
