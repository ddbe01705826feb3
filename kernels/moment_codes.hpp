// How a moment of the optimiser is held in 8 or 16 bits. Numbers are in blocks of kNormChunk. Pure
// functions, for the host and for devices, which get the same bits from them.
//
// kBf16: the upper half of the f32. kSigned8 and kUnsigned8: the magnitude as a share of the
// largest one of its block, with 3 bits of mantissa: code q > 0 is the f32 whose upper 12 bits are
// base + q, and the largest code is exactly 1; code 0 is 0. Signed codes have the sign in bit 7 and
// reach down to 2^-15, unsigned ones to 2^-31; an unsigned number above 0 never becomes 0, for the
// step divides by its root.
//
// Rounding is stochastic: a number goes up with the probability of its distance, drawn from the
// step and its place in the model. Rounding to the nearest would stop a slow average: a second
// moment with beta 0.999 moves by a thousandth a step, and codes are up to an eighth apart.
// kNearest, for numbers that come from codes, restores these codes.
#pragma once

#include "kernels/shapes.hpp"

#include <bit>
#include <cstdint>

namespace troupe::kernels {

enum class MomentCode : std::uint8_t { kBf16, kSigned8, kUnsigned8 };

// The bytes of one number.
[[gnu::always_inline]] constexpr std::int64_t code_bytes(MomentCode code) {
  return code == MomentCode::kBf16 ? 2 : 1;
}
// Whether each block has a scale, its largest magnitude.
[[gnu::always_inline]] constexpr bool has_scales(MomentCode code) {
  return code != MomentCode::kBf16;
}

enum class MomentRounding : std::uint8_t { kStochastic, kNearest };

// The numbers of one moment that a process has.
struct CompactMoment {
  MomentCode code = MomentCode::kBf16;
  std::int64_t count = 0;    // the last block may be shorter
  void* codes = nullptr;     // [count] uint16_t or uint8_t
  float* scales = nullptr;   // [blocks]
  float* numbers = nullptr;  // f32, from the block `first` on: expanded to, or compressed from
  std::int64_t first = 0;
  MomentRounding rounding = MomentRounding::kStochastic;
  std::uint32_t seed = 0;  // of the step and moment
  // Block b of these is the block b * block_step + block_at of the whole moment.
  std::int64_t block_step = 1, block_at = 0;
};

namespace moment_codes {

constexpr int kDropped = 20;  // bits of an f32 below an 8-bit code's mantissa
[[gnu::always_inline]] constexpr std::uint32_t top(MomentCode code) {
  return code == MomentCode::kSigned8 ? 120 : 248;
}
// The upper 12 bits of 1.0f are base + top.
[[gnu::always_inline]] constexpr std::uint32_t base(MomentCode code) {
  return (std::bit_cast<std::uint32_t>(1.0f) >> kDropped) - top(code);
}

// What is the same for the elements of a block that begins at `element` of the whole moment.
[[gnu::always_inline]] constexpr std::uint32_t block_seed(std::uint32_t seed,
                                                          std::int64_t element) {
  const auto high = static_cast<std::uint32_t>(static_cast<std::uint64_t>(element) >> 32);
  return seed ^ (high * 0x85EBCA77u);
}
// 32 bits for an element; `low`: the lower half of its place. The finaliser is that of MurmurHash3.
[[gnu::always_inline]] constexpr std::uint32_t noise(std::uint32_t block_seed, std::uint32_t low) {
  std::uint32_t x = block_seed ^ (low * 0x9E3779B1u);
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return x ^ (x >> 16);
}

// `bits` without the `dropped` lowest, which `by` rounds.
[[gnu::always_inline]] constexpr std::uint32_t rounded(std::uint32_t bits,
                                                       int dropped,
                                                       MomentRounding rounding,
                                                       std::uint32_t by) {
  const std::uint32_t lowest =
      rounding == MomentRounding::kNearest ? 1u << (dropped - 1) : by & ((1u << dropped) - 1u);
  return (bits + lowest) >> dropped;
}

// Not for numbers that are not finite: the largest finite one may become infinite.
[[gnu::always_inline]] constexpr std::uint16_t to_16(float x,
                                                     MomentRounding rounding,
                                                     std::uint32_t by) {
  return static_cast<std::uint16_t>(rounded(std::bit_cast<std::uint32_t>(x), 16, rounding, by));
}
[[gnu::always_inline]] constexpr float from_16(std::uint16_t code) {
  return std::bit_cast<float>(std::uint32_t{code} << 16);
}

// The bits of |x|, which are in the order of the magnitudes.
[[gnu::always_inline]] constexpr std::int32_t magnitude_bits(float x) {
  return static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(x) & 0x7fffffffu);
}

// `scale`: the largest magnitude of the block. Without branches, so that loops become vectors.
[[gnu::always_inline]] constexpr std::uint8_t to_8(
    MomentCode code, float x, float scale, MomentRounding rounding, std::uint32_t by) {
  const auto share = static_cast<std::uint32_t>(magnitude_bits(x / scale));
  const auto least = static_cast<std::int32_t>(base(code)),
             most = static_cast<std::int32_t>(top(code));
  std::int32_t q = static_cast<std::int32_t>(rounded(share, kDropped, rounding, by)) - least;
  q = q < 0 ? 0 : q;
  q = q > most ? most : q;
  if (code == MomentCode::kUnsigned8)
    q = (q == 0) & (x > 0.0f) ? 1 : q;
  else
    q |= (q > 0) & (x < 0.0f) ? 0x80 : 0;
  return static_cast<std::uint8_t>(scale > 0.0f ? q : 0);
}
[[gnu::always_inline]] constexpr float from_8(MomentCode code, std::uint8_t bits, float scale) {
  const std::uint32_t q = code == MomentCode::kSigned8 ? bits & 0x7fu : bits;
  const float x = std::bit_cast<float>((base(code) + q) << kDropped) * scale;
  const float magnitude = q == 0 ? 0.0f : x;
  return code == MomentCode::kSigned8 && bits >= 0x80u ? -magnitude : magnitude;
}

}  // namespace moment_codes
}  // namespace troupe::kernels
