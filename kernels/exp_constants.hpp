// The constants of exp_f32 and tanh_f32, shared by all levels (ADR 0003). exp: reduces x = n ln2 +
// r with ln2 in two parts, then uses a polynomial of degree 6 in r, 1 + r + r^2 (c2 + c3 r + c4 r^2
// + c5 r^3 + c6 r^4), interpolated at Chebyshev nodes of [-ln2/2, ln2/2]. tanh: below kTanhSmall
// the polynomial x + x^3 (t1 + t2 x^2 + ... + t5 x^8), interpolated the same way in x^2; above it 1
// - 2 / (exp(2 |x|) + 1) with the sign of x. No macros, no state.
#pragma once

namespace troupe::kernels::exp_constants {

inline constexpr float kLog2E = 0x1.715476p+0f;
inline constexpr float kRound = 0x1.8p+23f;  // adding it leaves the rounded integer in the low bits
inline constexpr float kLn2Hi = 0x1.62e430p-1f;
inline constexpr float kLn2Lo = -0x1.05c610p-29f;
inline constexpr float kC2 = 0.5f;
inline constexpr float kC3 = 0x1.5554dcp-3f;
inline constexpr float kC4 = 0x1.55551ap-5f;
inline constexpr float kC5 = 0x1.120b6ep-7f;
inline constexpr float kC6 = 0x1.6d110ap-10f;
inline constexpr float kLowest = -87.33f;
inline constexpr float kHighest = 88.72f;

inline constexpr float kTanhSmall = 0.625f;
inline constexpr float kT1 = -0x1.555552p-2f;
inline constexpr float kT2 = 0x1.110e1cp-3f;
inline constexpr float kT3 = -0x1.b9258ap-5f;
inline constexpr float kT4 = 0x1.58048ep-6f;
inline constexpr float kT5 = -0x1.8f8de4p-8f;

}  // namespace troupe::kernels::exp_constants
