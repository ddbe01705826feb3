// exp_f32 and tanh_f32 on sixteen lanes, in the order of kernels/reference/scalar.cpp. Like all
// sources of this folder, compiled once per level in that level's namespace (TROUPE_KERNEL_LEVEL).
// Nothing here may call an inline function that another level also compiles, because the linker
// could keep the wrong copy.
#pragma once

#include "kernels/exp_constants.hpp"

#include <cstdint>

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

constexpr float kInfinity = __builtin_inff();

inline std::int64_t smaller(std::int64_t x, std::int64_t y) {
  return x < y ? x : y;
}

inline Vec exp(Vec x) {
  using namespace exp_constants;
  const Vec shifted = fma(x, Vec::all(kLog2E), Vec::all(kRound));
  const Vec n = shifted - Vec::all(kRound);
  Vec r = fma(n, Vec::all(-kLn2Hi), x);
  r = fma(n, Vec::all(-kLn2Lo), r);
  Vec p = Vec::all(kC6);
  p = fma(p, r, Vec::all(kC5));
  p = fma(p, r, Vec::all(kC4));
  p = fma(p, r, Vec::all(kC3));
  p = fma(p, r, Vec::all(kC2));
  p = fma(p, r, Vec::all(1.0f));
  p = fma(p, r, Vec::all(1.0f));
  Vec y = add_exponent(p, shifted);
  y = select(less(x, Vec::all(kLowest)), Vec::zero(), y);
  y = select(less(Vec::all(kHighest), x), Vec::all(kInfinity), y);
  return select(is_nan(x), x, y);
}

inline Vec tanh(Vec x) {
  using namespace exp_constants;
  const Vec size = larger(x, -x);
  const Vec far = Vec::all(1.0f) - Vec::all(2.0f) / (exp(size + size) + Vec::all(1.0f));
  const Vec z = x * x;
  Vec p = Vec::all(kT5);
  p = fma(p, z, Vec::all(kT4));
  p = fma(p, z, Vec::all(kT3));
  p = fma(p, z, Vec::all(kT2));
  p = fma(p, z, Vec::all(kT1));
  const Vec near = fma(x * z, p, x);
  return select(less(size, Vec::all(kTanhSmall)), near, select(less(x, Vec::zero()), -far, far));
}

// Helpers that call f(offset, mask) for groups of sixteen. Complete groups pass `Full` instead of a
// mask, and so use plain loads.
struct Full {};
inline Vec load(const float* p, Full) {
  return Vec::load(p);
}
inline Vec load(const float* p, Mask m) {
  return Vec::load(p, m);
}
inline void store(float* p, Vec x, Full) {
  x.store(p);
}
inline void store(float* p, Vec x, Mask m) {
  x.store(p, m);
}
inline Vec keep(Vec x, Full) {
  return x;
}
inline Vec keep(Vec x, Mask m) {
  return select(m, x, Vec::zero());
}

template <class Function>
inline void for_lanes(std::int64_t count, Function&& f) {
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    f(i, Full{});
  if (i < count) f(i, Mask::first(count - i));
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
