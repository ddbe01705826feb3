// The gates of the activations (kernels/reference/activations.hpp). z(g) is the exponent in g / (1
// + exp(z)). slope(g, s) is the factor of the derivative s * slope, with s = 1 / (1 + exp(z)). No
// state.
#pragma once

#include "kernels/gelu_constants.hpp"

#include <cuda_runtime.h>

namespace troupe::kernels::cuda {

struct SiluGate {
  __device__ static float z(float gate) { return -gate; }
  __device__ static float slope(float gate, float sigmoid) {
    return __fmaf_rn(gate, 1.0f - sigmoid, 1.0f);
  }
};

struct GeluGate {
  __device__ static float z(float gate) {
    using namespace gelu_constants;
    return gate * __fmaf_rn(kGeluCubic, gate * gate, kGeluLinear);
  }
  __device__ static float slope(float gate, float sigmoid) {
    using namespace gelu_constants;
    const float steepness = __fmaf_rn(-3.0f * kGeluCubic, gate * gate, -kGeluLinear);
    return __fmaf_rn(gate * (1.0f - sigmoid), steepness, 1.0f);
  }
};

}  // namespace troupe::kernels::cuda
