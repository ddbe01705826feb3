// The gated activations of a feed-forward block, the soft cap of logits, and their gradients.
#include "kernels/gelu_constants.hpp"
#include "kernels/reference/reference.hpp"
#include "kernels/scalar.hpp"

#include <cmath>

namespace troupe::kernels::reference {

using gelu_constants::kGeluCubic;
using gelu_constants::kGeluLinear;

float Silu::z(float gate) {
  return -gate;
}
float Silu::slope(float gate, float sigmoid) {
  return std::fma(gate, 1.0f - sigmoid, 1.0f);
}

// With t = sqrt(2 / pi) (g + 0.044715 g^3): z = g (a + b g^2) = -2t, and the slope is
// 1 - g (1 - s) z', z' = a + 3b g^2.
float GeluTanh::z(float gate) {
  return gate * std::fma(kGeluCubic, gate * gate, kGeluLinear);
}
float GeluTanh::slope(float gate, float sigmoid) {
  const float steepness = std::fma(-3.0f * kGeluCubic, gate * gate, -kGeluLinear);
  return std::fma(gate * (1.0f - sigmoid), steepness, 1.0f);
}

template <class Gate>
void gate_mul(const float* gate_up,
              std::int64_t ldg,
              std::int64_t ffn,
              float* y,
              std::int64_t ldy,
              std::int64_t row_begin,
              std::int64_t row_end) {
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    for (std::int64_t i = 0; i < ffn; ++i) {
      const float gate = gate_up[row * ldg + i];
      const float up = gate_up[row * ldg + ffn + i];
      y[row * ldy + i] = (gate / (1.0f + exp_f32(Gate::z(gate)))) * up;
    }
  }
}

template <class Gate>
void gate_mul_backward(const float* gate_up,
                       std::int64_t ldg,
                       std::int64_t ffn,
                       const float* dy,
                       std::int64_t ldy,
                       float* dgate_up,
                       std::int64_t lddg,
                       std::int64_t row_begin,
                       std::int64_t row_end) {
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    for (std::int64_t i = 0; i < ffn; ++i) {
      const float gate = gate_up[row * ldg + i];
      const float up = gate_up[row * ldg + ffn + i];
      const float grad = dy[row * ldy + i];
      const float denominator = 1.0f + exp_f32(Gate::z(gate));
      const float sigmoid = 1.0f / denominator;
      dgate_up[row * lddg + i] = ((grad * up) * sigmoid) * Gate::slope(gate, sigmoid);
      dgate_up[row * lddg + ffn + i] = grad * (gate / denominator);
    }
  }
}

template decltype(gate_mul<Silu>) gate_mul<Silu>;
template decltype(gate_mul<GeluTanh>) gate_mul<GeluTanh>;
template decltype(gate_mul_backward<Silu>) gate_mul_backward<Silu>;
template decltype(gate_mul_backward<GeluTanh>) gate_mul_backward<GeluTanh>;

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

}  // namespace troupe::kernels::reference
