// Moments of the optimiser in fewer bits (kernels/moment_codes.hpp), a block at a time. Every level
// compiles its own copy (kernels/batches.hpp): the same integer arithmetic, in vectors as wide as
// the level's.
#pragma once

#include "kernels/moment_codes.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

// A block of the moment, and where its numbers are.
struct MomentBlock {
  std::int64_t size;
  std::uint32_t seed, low;  // of the rounding: of the block, and the place of its first element
  std::int64_t at;          // its first, of the codes here
  float* numbers;
};

inline MomentBlock moment_block(const CompactMoment& c, std::int64_t block) {
  const std::int64_t at = block * kNormChunk, left = c.count - at;
  const std::int64_t element = (block * c.block_step + c.block_at) * kNormChunk;
  return {left < kNormChunk ? left : kNormChunk, moment_codes::block_seed(c.seed, element),
          static_cast<std::uint32_t>(element), at, c.numbers + (block - c.first) * kNormChunk};
}

template <MomentCode code>
void expand_8(const CompactMoment& c, const MomentBlock& block, float scale) {
  const std::uint8_t* const codes = static_cast<const std::uint8_t*>(c.codes) + block.at;
  float* const numbers = block.numbers;
#pragma GCC ivdep  // codes and numbers do not overlap
  for (std::int64_t i = 0; i < block.size; ++i)
    numbers[i] = moment_codes::from_8(code, codes[i], scale);
}

// Returns the scale.
template <MomentCode code, MomentRounding rounding>
float compress_8(const CompactMoment& c, const MomentBlock& block) {
  std::uint8_t* const codes = static_cast<std::uint8_t*>(c.codes) + block.at;
  const float* const numbers = block.numbers;
  std::int32_t largest = 0;
  for (std::int64_t i = 0; i < block.size; ++i) {
    const std::int32_t bits = moment_codes::magnitude_bits(numbers[i]);
    largest = bits > largest ? bits : largest;
  }
  const float scale = std::bit_cast<float>(largest);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < block.size; ++i)
    codes[i] = moment_codes::to_8(
        code, numbers[i], scale, rounding,
        moment_codes::noise(block.seed, block.low + static_cast<std::uint32_t>(i)));
  return scale;
}

template <MomentRounding rounding>
void compress_16(const CompactMoment& c, const MomentBlock& block) {
  std::uint16_t* const codes = static_cast<std::uint16_t*>(c.codes) + block.at;
  const float* const numbers = block.numbers;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < block.size; ++i)
    codes[i] = moment_codes::to_16(
        numbers[i], rounding,
        moment_codes::noise(block.seed, block.low + static_cast<std::uint32_t>(i)));
}

template <MomentRounding rounding>
void compress_block(const CompactMoment& c, std::int64_t b) {
  const MomentBlock block = moment_block(c, b);
  if (c.code == MomentCode::kBf16)
    compress_16<rounding>(c, block);
  else if (c.code == MomentCode::kSigned8)
    c.scales[b] = compress_8<MomentCode::kSigned8, rounding>(c, block);
  else
    c.scales[b] = compress_8<MomentCode::kUnsigned8, rounding>(c, block);
}

inline void expand_moment(const CompactMoment& c, Range blocks) {
  for (std::int64_t b = blocks.begin; b < blocks.end; ++b) {
    const MomentBlock block = moment_block(c, b);
    if (c.code == MomentCode::kBf16) {
      const std::uint16_t* const codes = static_cast<const std::uint16_t*>(c.codes) + block.at;
      float* const numbers = block.numbers;
#pragma GCC ivdep
      for (std::int64_t i = 0; i < block.size; ++i)
        numbers[i] = moment_codes::from_16(codes[i]);
    } else if (c.code == MomentCode::kSigned8) {
      expand_8<MomentCode::kSigned8>(c, block, c.scales[b]);
    } else {
      expand_8<MomentCode::kUnsigned8>(c, block, c.scales[b]);
    }
  }
}

inline void compress_moment(const CompactMoment& c, Range blocks) {
  for (std::int64_t b = blocks.begin; b < blocks.end; ++b) {
    if (c.rounding == MomentRounding::kNearest)
      compress_block<MomentRounding::kNearest>(c, b);
    else
      compress_block<MomentRounding::kStochastic>(c, b);
  }
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
