// exp, tanh and log of kernels/scalar.hpp for device code: the same operations in the same order,
// so the same bits. Requires -ftz=true, -fmad=false and correctly rounded division
// (runtime/cmake/TroupeCuda.cmake sets them).
#pragma once

#include "kernels/exp_constants.hpp"

#include <cuda_runtime.h>

#include <cstdint>

namespace troupe::kernels::cuda {

__device__ inline float infinity() {
  return __uint_as_float(0x7f800000u);
}
__device__ inline float not_a_number() {
  return __uint_as_float(0x7fc00000u);
}

// The larger one; the second if neither is larger.
__device__ inline float larger(float x, float y) {
  return x > y ? x : y;
}

__device__ inline float exp_f32(float x) {
  using namespace exp_constants;
  const float shifted = __fmaf_rn(x, kLog2E, kRound);
  const float n = shifted - kRound;
  float r = __fmaf_rn(n, -kLn2Hi, x);
  r = __fmaf_rn(n, -kLn2Lo, r);
  float p = kC6;
  p = __fmaf_rn(p, r, kC5);
  p = __fmaf_rn(p, r, kC4);
  p = __fmaf_rn(p, r, kC3);
  p = __fmaf_rn(p, r, kC2);
  p = __fmaf_rn(p, r, 1.0f);
  p = __fmaf_rn(p, r, 1.0f);
  float y = __uint_as_float(__float_as_uint(p) + (__float_as_uint(shifted) << 23));
  if (x < kLowest) y = 0.0f;
  if (x > kHighest) y = infinity();
  if (x != x) y = x;
  return y;
}

__device__ inline float tanh_f32(float x) {
  using namespace exp_constants;
  const float size = x > -x ? x : -x;
  const float far = 1.0f - 2.0f / (exp_f32(size + size) + 1.0f);
  const float z = x * x;
  float p = kT5;
  p = __fmaf_rn(p, z, kT4);
  p = __fmaf_rn(p, z, kT3);
  p = __fmaf_rn(p, z, kT2);
  p = __fmaf_rn(p, z, kT1);
  const float near = __fmaf_rn(x * z, p, x);
  return size < kTanhSmall ? near : x < 0.0f ? -far : far;
}

__device__ inline float log_f32(float x) {
  if (x != x || x < 0.0f) return not_a_number();
  if (x == 0.0f) return -infinity();
  if (x == infinity()) return x;
  // Computed in double from the bits. x is normal here, because denormals are flushed to zero.
  const std::uint32_t bits = __float_as_uint(x);
  int exponent = static_cast<int>(bits >> 23) - 127;
  double m = static_cast<double>(__uint_as_float((bits & 0x007fffffu) | 0x3f800000u));
  if (m > 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    exponent += 1;
  }
  const double f = (m - 1.0) / (m + 1.0);
  const double f2 = f * f;
  double series = 0.0;
  for (int term = 19; term >= 1; term -= 2)
    series = series * f2 + 1.0 / term;
  return static_cast<float>(static_cast<double>(exponent) * 0x1.62e42fefa39efp-1 +
                            2.0 * f * series);
}

}  // namespace troupe::kernels::cuda
