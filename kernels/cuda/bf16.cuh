// Numbers of bfloat16 as products and attention use them: rounded to nearest, denormals to zero.
#pragma once

#include "kernels/cuda/primitives.cuh"
#include "kernels/shapes.hpp"

namespace troupe::kernels::cuda {

// Two numbers rounded; `low` goes to the low half.
__device__ inline std::uint32_t rounded_pair(float low, float high) {
  const auto flushed = [](float x) { return (__float_as_uint(x) & 0x7f800000u) == 0 ? 0.0f : x; };
  return pair_of_bf16(flushed(low), flushed(high));
}
__device__ inline float rounded_to_bf16(float x) {
  return __uint_as_float(rounded_pair(x, 0.0f) << 16);
}

// A number of a KV pool.
__device__ inline float as_float(float x) {
  return x;
}
__device__ inline float as_float(std::uint16_t bits) {
  return __uint_as_float(std::uint32_t{bits} << 16);
}

}  // namespace troupe::kernels::cuda
