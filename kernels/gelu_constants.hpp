// The constants of the tanh form of GELU, written as a sigmoid: g / (1 + exp(g (a + b g^2))), a =
// -2 sqrt(2/pi), b = 0.044715 a. Shared by all levels; no state.
#pragma once

namespace troupe::kernels::gelu_constants {

inline constexpr float kGeluLinear = -1.5957691216057308f;
inline constexpr float kGeluCubic = -0.071354816272600883f;

}  // namespace troupe::kernels::gelu_constants
