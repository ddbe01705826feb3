// exp, tanh and log for single numbers, in Troupe's own arithmetic. `exp_f32` gives the same bits
// as Ops::exp, `tanh_f32` the same as the soft caps of scores and logits. `log_f32` is the only
// logarithm of the forward pass. All are plain IEEE arithmetic in a fixed order, so their bits
// depend neither on the C library nor on the processor. Thread-safe, no state.
#pragma once

namespace troupe::kernels {

// e^x within 2 ulp: 0 below -87.33, +inf above 88.72, NaN stays NaN.
float exp_f32(float x) noexcept;
// Natural logarithm, correct to within 1 ulp: -inf at 0, NaN below 0.
float log_f32(float x) noexcept;

// Hyperbolic tangent within 2 ulp, computed with exp_f32. NaN stays NaN.
float tanh_f32(float x) noexcept;

}  // namespace troupe::kernels
