// Products of bfloat16 pairs (PanelDtype::kBf16Compute) with the dot product of AVX512-bf16,
// compiled with that instruction set: call dot_gemm only where available() is true.
#pragma once

#include "kernels/shapes.hpp"

namespace troupe::kernels::avx512_bf16 {

// Whether the processor has the instruction. Cheap enough to ask at every product.
bool available() noexcept;
// Ops::gemm for kBf16Compute panels. k must be at most 2 * kPairs_max.
inline constexpr std::int64_t kPairs_max = 32 << 10;
void dot_gemm(const Gemm& g, Range rows, Range panels);

}  // namespace troupe::kernels::avx512_bf16
