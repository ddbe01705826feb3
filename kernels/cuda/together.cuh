// Neighbouring numbers in one access each: 2, or a multiple of 4. Places are multiples of 8 or 16
// bytes.
#pragma once

#include <cuda_runtime.h>

namespace troupe::kernels::cuda {

template <int kCount>
__device__ inline void read_together(const float* from, float (&to)[kCount]) {
  static_assert(kCount == 2 || kCount % 4 == 0);
  if constexpr (kCount == 2) {
    const float2 two = *reinterpret_cast<const float2*>(from);
    to[0] = two.x, to[1] = two.y;
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + i);
      to[i] = four.x, to[i + 1] = four.y, to[i + 2] = four.z, to[i + 3] = four.w;
    }
  }
}

template <int kCount>
__device__ inline void write_together(float* to, const float (&from)[kCount]) {
  static_assert(kCount == 2 || kCount % 4 == 0);
  if constexpr (kCount == 2) {
    *reinterpret_cast<float2*>(to) = make_float2(from[0], from[1]);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += 4)
      *reinterpret_cast<float4*>(to + i) =
          make_float4(from[i], from[i + 1], from[i + 2], from[i + 3]);
  }
}

}  // namespace troupe::kernels::cuda
