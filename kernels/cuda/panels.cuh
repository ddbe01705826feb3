// Reads and rounds the numbers of packed panels (kernels/panels.hpp) on a device. No state.
#pragma once

#include "kernels/panels.hpp"

#include <cuda_runtime.h>

namespace troupe::kernels::cuda {

// The same as to_bf16 of kernels/panels.hpp; the result is in the low half.
__device__ inline std::uint32_t bf16_bits(float x) {
  const std::uint32_t bits = __float_as_uint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0u;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
// The two bfloat16 numbers of a word: steps k and k + 1 of a column.
__device__ inline float low_bf16(std::uint32_t pair) {
  return __uint_as_float(pair << 16);
}
__device__ inline float high_bf16(std::uint32_t pair) {
  return __uint_as_float(pair & 0xffff0000u);
}

// The same as panel_value of kernels/panels.hpp.
__device__ inline float stored(const Panels& panels,
                               std::int64_t k,
                               std::int64_t column,
                               std::int64_t i) {
  const auto* const panel = static_cast<const unsigned char*>(panels.data) +
                            column / kPanel * panel_bytes(panels.dtype, k);
  const std::int64_t c = column % kPanel;
  switch (panels.dtype) {
    case PanelDtype::kBf16:
    case PanelDtype::kBf16Compute: {
      const std::uint32_t pair = reinterpret_cast<const std::uint32_t*>(panel)[i / 2 * kPanel + c];
      return i % 2 == 0 ? low_bf16(pair) : high_bf16(pair);
    }
    case PanelDtype::kInt8:
      return static_cast<float>(reinterpret_cast<const signed char*>(panel)[i * kPanel + c]);
    default:
      return reinterpret_cast<const float*>(panel)[i * kPanel + c];
  }
}

}  // namespace troupe::kernels::cuda
