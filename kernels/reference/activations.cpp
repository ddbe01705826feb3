// The gated activations of a feed-forward block, the soft cap of logits, and their gradients.
#include "kernels/gelu_constants.hpp"
#include "kernels/reference/reference.hpp"
#include "kernels/scalar.hpp"

#include <cmath>

namespace troupe::kernels::reference {

using gelu_constants::kGeluCubic;
using gelu_constants::kGeluLinear;

void silu_mul(const float* gate_up,
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
      y[row * ldy + i] = (gate / (1.0f + exp_f32(-gate))) * up;
    }
  }
}

// With s = 1 / (1 + exp(-g)): du = dy (g / (1 + exp(-g))), dg = dy u s (1 + g (1 - s)).
void silu_mul_backward(const float* gate_up,
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
      const float denominator = 1.0f + exp_f32(-gate);
      const float sigmoid = 1.0f / denominator;
      const float slope = std::fma(gate, 1.0f - sigmoid, 1.0f);
      dgate_up[row * lddg + i] = ((grad * up) * sigmoid) * slope;
      dgate_up[row * lddg + ffn + i] = grad * (gate / denominator);
    }
  }
}

void gelu_mul(const float* gate_up,
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
      const float inner = std::fma(kGeluCubic, gate * gate, kGeluLinear);
      y[row * ldy + i] = (gate / (1.0f + exp_f32(gate * inner))) * up;
    }
  }
}

// With z = g (a + b g^2) = -2t and s = 1 / (1 + exp(z)): dg = dy u s (1 - g (1 - s) z'), z' = a +
// 3b g^2.
void gelu_mul_backward(const float* gate_up,
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
      const float square = gate * gate;
      const float inner = std::fma(kGeluCubic, square, kGeluLinear);
      const float denominator = 1.0f + exp_f32(gate * inner);
      const float sigmoid = 1.0f / denominator;
      const float steepness = std::fma(-3.0f * kGeluCubic, square, -kGeluLinear);
      const float slope = std::fma(gate * (1.0f - sigmoid), steepness, 1.0f);
      dgate_up[row * lddg + i] = ((grad * up) * sigmoid) * slope;
      dgate_up[row * lddg + ffn + i] = grad * (gate / denominator);
    }
  }
}

void softcap(float* x, std::int64_t count, float cap) {
  for (std::int64_t i = 0; i < count; ++i)
    x[i] = cap * tanh_f32(x[i] / cap);
}

void softcap_backward(const float* y, float* grad, std::int64_t count, float cap) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float t = y[i] / cap;
    grad[i] = grad[i] * std::fma(-t, t, 1.0f);
  }
}

}  // namespace troupe::kernels::reference
