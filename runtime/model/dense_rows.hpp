// Short forms of the norm and activation kernels (kernels/ops.hpp) for row-major f32 matrices
// without padding between rows. Each call computes `rows`, usually the calling member's share.
// Internal to this room.
#pragma once

#include "kernels/ops.hpp"
#include "runtime/model/spec.hpp"

#include <cstdint>

namespace troupe::model {

// RMSNorm of x [rows, hidden] with `weight` [hidden]; y may be x. `inv_rms` [rows] receives the
// factors 1 / rms, which the backward pass reads, or is null.
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

// The backward pass of norm_rows: adds the gradient of x to dx.
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

// act [rows, ffn] = activation(gate) * up, with gate and up side by side in gate_up [rows, 2 ffn].
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

// The backward pass of gate_rows: overwrites gate_up with its gradient. `dact` is [rows, ffn].
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
