// The gated activations of a feed-forward block, the soft cap of logits, and their gradients.
#pragma once

#include "kernels/gelu_constants.hpp"
#include "kernels/row_shapes.hpp"
#include "kernels/scalar.hpp"

#include <cmath>

namespace troupe::kernels::reference {
namespace {

using gelu_constants::kGeluCubic;
using gelu_constants::kGeluLinear;

// A gate maps g to g / (1 + exp(z)). With s = 1 / (1 + exp(z)) its derivative is s * slope, so du =
// dy (g / (1 + exp(z))) and dg = dy u s * slope.
struct Silu {
  static float z(float gate) { return -gate; }
  static float slope(float gate, float sigmoid) { return std::fma(gate, 1.0f - sigmoid, 1.0f); }
};

// With t = sqrt(2 / pi) (g + 0.044715 g^3): z = g (a + b g^2) = -2t, and the slope is
// 1 - g (1 - s) z', z' = a + 3b g^2.
struct GeluTanh {
  static float z(float gate) { return gate * std::fma(kGeluCubic, gate * gate, kGeluLinear); }
  static float slope(float gate, float sigmoid) {
    const float steepness = std::fma(-3.0f * kGeluCubic, gate * gate, -kGeluLinear);
    return std::fma(gate * (1.0f - sigmoid), steepness, 1.0f);
  }
};

template <class Gate>
void gate_mul_of(const GateMul& g, Range rows) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    for (std::int64_t i = 0; i < g.ffn; ++i) {
      const float gate = g.gate_up[row * g.ldg + i];
      const float up = g.gate_up[row * g.ldg + g.ffn + i];
      g.y[row * g.ldy + i] = (gate / (1.0f + exp_f32(Gate::z(gate)))) * up;
    }
  }
}

template <class Gate>
void gate_mul_backward_of(const GateMulBackward& g, Range rows) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    for (std::int64_t i = 0; i < g.ffn; ++i) {
      const float gate = g.gate_up[row * g.ldg + i];
      const float up = g.gate_up[row * g.ldg + g.ffn + i];
      const float grad = g.dy[row * g.ldy + i];
      const float denominator = 1.0f + exp_f32(Gate::z(gate));
      const float sigmoid = 1.0f / denominator;
      g.dgate_up[row * g.lddg + i] = ((grad * up) * sigmoid) * Gate::slope(gate, sigmoid);
      g.dgate_up[row * g.lddg + g.ffn + i] = grad * (gate / denominator);
    }
  }
}

void softcap_row(float* x, std::int64_t count, float cap) {
  for (std::int64_t i = 0; i < count; ++i)
    x[i] = cap * tanh_f32(x[i] / cap);
}

void softcap_gradient_row(const float* y, float* grad, std::int64_t count, float cap) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float t = y[i] / cap;
    grad[i] = grad[i] * std::fma(-t, t, 1.0f);
  }
}

}  // namespace
}  // namespace troupe::kernels::reference
