// Norms and activations (kernels/ops.hpp) over contiguous rows: the leading dimension is the width
// of a row. Each call computes the rows of the calling member. Internal to this room.
#pragma once

#include "kernels/ops.hpp"
#include "runtime/model/spec.hpp"

#include <cstdint>

namespace troupe::model {

// `inv_rms` may be null; y may be x.
inline void norm_rows(const ModelSpec& spec,
                      const float* x,
                      const float* weight,
                      float* y,
                      float* inv_rms,
                      core::Range rows) {
  const kernels::RmsNorm norm{.d = spec.hidden,
                              .x = x,
                              .ldx = spec.hidden,
                              .weight = weight,
                              .eps = spec.rms_eps,
                              .y = y,
                              .ldy = spec.hidden,
                              .inv_rms = inv_rms};
  kernels::ops().rmsnorm(norm, rows);
}

// Adds the gradient to dx.
inline void norm_rows_backward(std::int64_t hidden,
                               const float* x,
                               const float* weight,
                               const float* inv_rms,
                               const float* dy,
                               float* dx,
                               core::Range rows) {
  const kernels::RmsNormBackward norm{.d = hidden,
                                      .x = x,
                                      .ldx = hidden,
                                      .weight = weight,
                                      .inv_rms = inv_rms,
                                      .dy = dy,
                                      .ldy = hidden,
                                      .dx = dx,
                                      .lddx = hidden};
  kernels::ops().rmsnorm_backward(norm, rows);
}

// Reads gate_up [rows, 2 ffn] and writes act [rows, ffn].
inline void gate_rows(
    Activation activation, const float* gate_up, std::int64_t ffn, float* act, core::Range rows) {
  const kernels::GateMul gates{.activation = activation,
                               .ffn = ffn,
                               .gate_up = gate_up,
                               .ldg = 2 * ffn,
                               .y = act,
                               .ldy = ffn};
  kernels::ops().gate_mul(gates, rows);
}

// Overwrites gate_up with its gradient.
inline void gate_rows_backward(
    Activation activation, float* gate_up, std::int64_t ffn, const float* dact, core::Range rows) {
  const kernels::GateMulBackward gates{.activation = activation,
                                       .ffn = ffn,
                                       .gate_up = gate_up,
                                       .ldg = 2 * ffn,
                                       .dy = dact,
                                       .ldy = ffn,
                                       .dgate_up = gate_up,
                                       .lddg = 2 * ffn};
  kernels::ops().gate_mul_backward(gates, rows);
}

}  // namespace troupe::model
