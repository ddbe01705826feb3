// exp_f32, tanh_f32 and log_f32 for one number: the definition that the vector levels reproduce.
#include "kernels/scalar.hpp"

#include "kernels/exp_constants.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace troupe::kernels {

float exp_f32(float x) noexcept {
  using namespace exp_constants;
  const float shifted = std::fma(x, kLog2E, kRound);  // n in the low bits of the significand
  const float n = shifted - kRound;
  float r = std::fma(n, -kLn2Hi, x);
  r = std::fma(n, -kLn2Lo, r);
  float p = kC6;
  p = std::fma(p, r, kC5);
  p = std::fma(p, r, kC4);
  p = std::fma(p, r, kC3);
  p = std::fma(p, r, kC2);
  p = std::fma(p, r, 1.0f);
  p = std::fma(p, r, 1.0f);
  // p * 2^n by adding n to the exponent field.
  const std::uint32_t bits =
      std::bit_cast<std::uint32_t>(p) + (std::bit_cast<std::uint32_t>(shifted) << 23);
  float y = std::bit_cast<float>(bits);
  if (x < kLowest) y = 0.0f;
  if (x > kHighest) y = std::numeric_limits<float>::infinity();
  if (x != x) y = x;
  return y;
}

float tanh_f32(float x) noexcept {
  using namespace exp_constants;
  const float size = x > -x ? x : -x;
  const float far = 1.0f - 2.0f / (exp_f32(size + size) + 1.0f);
  const float z = x * x;
  float p = kT5;
  p = std::fma(p, z, kT4);
  p = std::fma(p, z, kT3);
  p = std::fma(p, z, kT2);
  p = std::fma(p, z, kT1);
  const float near = std::fma(x * z, p, x);
  return size < kTanhSmall ? near : x < 0.0f ? -far : far;
}

// x = 2^e m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(f), f = (m - 1) / (m + 1), in double.
float log_f32(float x) noexcept {
  if (x != x || x < 0.0f) return std::numeric_limits<float>::quiet_NaN();
  if (x == 0.0f) return -std::numeric_limits<float>::infinity();
  if (x == std::numeric_limits<float>::infinity()) return x;
  constexpr std::uint64_t kSignificand = (std::uint64_t{1} << 52) - 1;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(static_cast<double>(x));
  std::int64_t exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & kSignificand) | (std::uint64_t{1023} << 52));
  if (m > 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    exponent += 1;
  }
  const double f = (m - 1.0) / (m + 1.0);
  const double f2 = f * f;
  double series = 0.0;
  for (int term = 19; term >= 1; term -= 2)
    series = series * f2 + 1.0 / term;
  return static_cast<float>(static_cast<double>(exponent) * 0x1.62e42fefa39efp-1 +
                            2.0 * f * series);
}

}  // namespace troupe::kernels
