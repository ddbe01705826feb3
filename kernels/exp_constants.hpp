// The numbers of exp_f32, shared by all levels (ADR 0003): reduction x = n ln2 + r with ln2 in two
// parts, and a polynomial of degree 6 in r, 1 + r + r^2 (c2 + c3 r + c4 r^2 + c5 r^3 + c6 r^4),
// interpolated at Chebyshev nodes of [-ln2/2, ln2/2]. Macro-free constants; no state.
#pragma once

namespace troupe::kernels::exp_constants {

inline constexpr float kLog2E = 0x1.715476p+0f;
inline constexpr float kRound = 0x1.8p+23f;  // adding it rounds to an integer in the low bits
inline constexpr float kLn2Hi = 0x1.62e430p-1f;
inline constexpr float kLn2Lo = -0x1.05c610p-29f;
inline constexpr float kC2 = 0.5f;
inline constexpr float kC3 = 0x1.5554dcp-3f;
inline constexpr float kC4 = 0x1.55551ap-5f;
inline constexpr float kC5 = 0x1.120b6ep-7f;
inline constexpr float kC6 = 0x1.6d110ap-10f;
inline constexpr float kLowest = -87.33f;
inline constexpr float kHighest = 88.72f;

}  // namespace troupe::kernels::exp_constants
