// Conversions between f32 and the bit patterns of 16-bit floats: bf16 and IEEE half to f32 (exact),
// and f32 to bf16 (to nearest, ties to even; NaN stays NaN). Pure functions; safe on any thread.
#pragma once

#include <bit>
#include <cstdint>

namespace troupe::store {

inline float bf16_to_f32(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t f32_to_bf16(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

inline float f16_to_f32(std::uint16_t half) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1Fu;
  const std::uint32_t fraction = half & 0x3FFu;
  if (exponent == 0) {
    // fraction * 2^-24, exact in f32 and never denormal there.
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t high = exponent == 31 ? 0xFFu : exponent + 112u;
  return std::bit_cast<float>(sign | (high << 23) | (fraction << 13));
}

}  // namespace troupe::store
