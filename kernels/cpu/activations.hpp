// The gated activations of a feed-forward block, the soft cap of logits, and their gradients,
// sixteen lanes at a time in the order of kernels/reference/activations.hpp. Pure, no state; any
// thread.
#pragma once

#include "kernels/cpu/math.hpp"
#include "kernels/gelu_constants.hpp"
#include "kernels/row_shapes.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

using gelu_constants::kGeluCubic;
using gelu_constants::kGeluLinear;

// A gate maps g to g / (1 + exp(z)). With s = 1 / (1 + exp(z)) its derivative is s * slope.
struct Silu {
  static Vec z(Vec gate) { return -gate; }
  static Vec slope(Vec gate, Vec sigmoid) {
    const Vec one = Vec::all(1.0f);
    return fma(gate, one - sigmoid, one);
  }
};

struct GeluTanh {
  static Vec z(Vec gate) {
    return gate * fma(Vec::all(kGeluCubic), gate * gate, Vec::all(kGeluLinear));
  }
  static Vec slope(Vec gate, Vec sigmoid) {
    const Vec one = Vec::all(1.0f);
    const Vec steepness = fma(Vec::all(-3.0f * kGeluCubic), gate * gate, Vec::all(-kGeluLinear));
    return fma(gate * (one - sigmoid), steepness, one);
  }
};

template <class Gate>
void gate_mul_of(const GateMul& g, Range rows) {
  const std::int64_t ffn = g.ffn;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* gates = g.gate_up + row * g.ldg;
    float* out = g.y + row * g.ldy;
    for_lanes(ffn, [&](std::int64_t i, auto mask) {
      const Vec gate = load(gates + i, mask);
      const Vec value = gate / (Vec::all(1.0f) + exp(Gate::z(gate)));
      store(out + i, value * load(gates + ffn + i, mask), mask);
    });
  }
}

template <class Gate>
void gate_mul_backward_of(const GateMulBackward& g, Range rows) {
  const Vec one = Vec::all(1.0f);
  const std::int64_t ffn = g.ffn;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* gates = g.gate_up + row * g.ldg;
    const float* dy = g.dy + row * g.ldy;
    float* out = g.dgate_up + row * g.lddg;
    for_lanes(ffn, [&](std::int64_t i, auto mask) {
      const Vec gate = load(gates + i, mask);
      const Vec up = load(gates + ffn + i, mask);
      const Vec grad = load(dy + i, mask);
      const Vec denominator = one + exp(Gate::z(gate));
      const Vec sigmoid = one / denominator;
      store(out + i, ((grad * up) * sigmoid) * Gate::slope(gate, sigmoid), mask);
      store(out + ffn + i, grad * (gate / denominator), mask);
    });
  }
}

void softcap_row(float* x, std::int64_t count, float cap) {
  for_lanes(count, [&](std::int64_t i, auto mask) {
    store(x + i, Vec::all(cap) * tanh(load(x + i, mask) / Vec::all(cap)), mask);
  });
}

void softcap_gradient_row(const float* y, float* grad, std::int64_t count, float cap) {
  for_lanes(count, [&](std::int64_t i, auto mask) {
    const Vec t = load(y + i, mask) / Vec::all(cap);
    store(grad + i, load(grad + i, mask) * fma(-t, t, Vec::all(1.0f)), mask);
  });
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
