// The gated activations of a feed-forward block, the soft cap of logits, and their gradients,
// sixteen lanes at a time in the order of kernels/reference/activations.cpp. Pure, no state; any
// thread.
#pragma once

#include "kernels/cpu/math.hpp"
#include "kernels/gelu_constants.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

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
    const float* gates = gate_up + row * ldg;
    for_lanes(ffn, [&](std::int64_t i, auto mask) {
      const Vec gate = load(gates + i, mask);
      const Vec silu = gate / (Vec::all(1.0f) + exp(-gate));
      store(y + row * ldy + i, silu * load(gates + ffn + i, mask), mask);
    });
  }
}

void silu_mul_backward(const float* gate_up,
                       std::int64_t ldg,
                       std::int64_t ffn,
                       const float* dy,
                       std::int64_t ldy,
                       float* dgate_up,
                       std::int64_t lddg,
                       std::int64_t row_begin,
                       std::int64_t row_end) {
  const Vec one = Vec::all(1.0f);
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const float* gates = gate_up + row * ldg;
    float* out = dgate_up + row * lddg;
    for_lanes(ffn, [&](std::int64_t i, auto mask) {
      const Vec gate = load(gates + i, mask);
      const Vec up = load(gates + ffn + i, mask);
      const Vec grad = load(dy + row * ldy + i, mask);
      const Vec denominator = one + exp(-gate);
      const Vec sigmoid = one / denominator;
      const Vec slope = fma(gate, one - sigmoid, one);
      store(out + i, ((grad * up) * sigmoid) * slope, mask);
      store(out + ffn + i, grad * (gate / denominator), mask);
    });
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
    const float* gates = gate_up + row * ldg;
    for_lanes(ffn, [&](std::int64_t i, auto mask) {
      const Vec gate = load(gates + i, mask);
      const Vec inner = fma(Vec::all(kGeluCubic), gate * gate, Vec::all(kGeluLinear));
      const Vec gelu = gate / (Vec::all(1.0f) + exp(gate * inner));
      store(y + row * ldy + i, gelu * load(gates + ffn + i, mask), mask);
    });
  }
}

void gelu_mul_backward(const float* gate_up,
                       std::int64_t ldg,
                       std::int64_t ffn,
                       const float* dy,
                       std::int64_t ldy,
                       float* dgate_up,
                       std::int64_t lddg,
                       std::int64_t row_begin,
                       std::int64_t row_end) {
  const Vec one = Vec::all(1.0f);
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const float* gates = gate_up + row * ldg;
    float* out = dgate_up + row * lddg;
    for_lanes(ffn, [&](std::int64_t i, auto mask) {
      const Vec gate = load(gates + i, mask);
      const Vec up = load(gates + ffn + i, mask);
      const Vec grad = load(dy + row * ldy + i, mask);
      const Vec square = gate * gate;
      const Vec inner = fma(Vec::all(kGeluCubic), square, Vec::all(kGeluLinear));
      const Vec denominator = one + exp(gate * inner);
      const Vec sigmoid = one / denominator;
      const Vec steepness = fma(Vec::all(-3.0f * kGeluCubic), square, Vec::all(-kGeluLinear));
      const Vec slope = fma(gate * (one - sigmoid), steepness, one);
      store(out + i, ((grad * up) * sigmoid) * slope, mask);
      store(out + ffn + i, grad * (gate / denominator), mask);
    });
  }
}

void softcap(float* x, std::int64_t count, float cap) {
  for_lanes(count, [&](std::int64_t i, auto mask) {
    store(x + i, Vec::all(cap) * tanh(load(x + i, mask) / Vec::all(cap)), mask);
  });
}

void softcap_backward(const float* y, float* grad, std::int64_t count, float cap) {
  for_lanes(count, [&](std::int64_t i, auto mask) {
    const Vec t = load(y + i, mask) / Vec::all(cap);
    store(grad + i, load(grad + i, mask) * fma(-t, t, Vec::all(1.0f)), mask);
  });
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
