// Moments of the optimiser in fewer bits (kernels/moment_codes.hpp), on the host.
#include "kernels/moment_codes.hpp"
#include "kernels/plain_rows.hpp"

#include <algorithm>

namespace troupe::kernels::plain {
namespace {

// A block of the moment, and where its numbers are.
struct MomentBlock {
  std::int64_t size;
  std::int64_t element;  // its first, of the whole moment
  std::int64_t at;       // its first, of the codes here
  float* numbers;
};

MomentBlock block_of(const CompactMoment& c, std::int64_t block) {
  const std::int64_t at = block * kNormChunk;
  return {std::min(kNormChunk, c.count - at), (block * c.block_step + c.block_at) * kNormChunk, at,
          c.numbers + (block - c.first) * kNormChunk};
}

template <MomentCode code>
void expand_8(const CompactMoment& c, const MomentBlock& block, float scale) {
  const std::uint8_t* const codes = static_cast<const std::uint8_t*>(c.codes) + block.at;
  for (std::int64_t i = 0; i < block.size; ++i)
    block.numbers[i] = moment_codes::from_8(code, codes[i], scale);
}

template <MomentCode code, MomentRounding rounding>
float compress_8(const CompactMoment& c, const MomentBlock& block) {
  std::uint8_t* const codes = static_cast<std::uint8_t*>(c.codes) + block.at;
  float scale = 0;
  for (std::int64_t i = 0; i < block.size; ++i) {
    const float x = block.numbers[i], magnitude = x < 0.0f ? -x : x;
    scale = magnitude > scale ? magnitude : scale;
  }
  for (std::int64_t i = 0; i < block.size; ++i)
    codes[i] = moment_codes::to_8(code, block.numbers[i], scale, rounding,
                                  moment_codes::noise(c.seed, block.element + i));
  return scale;
}

template <MomentRounding rounding>
void compress_block(const CompactMoment& c, std::int64_t b) {
  const MomentBlock block = block_of(c, b);
  switch (c.code) {
    case MomentCode::kBf16: {
      std::uint16_t* const codes = static_cast<std::uint16_t*>(c.codes) + block.at;
      for (std::int64_t i = 0; i < block.size; ++i)
        codes[i] = moment_codes::to_16(block.numbers[i], rounding,
                                       moment_codes::noise(c.seed, block.element + i));
      return;
    }
    case MomentCode::kSigned8:
      c.scales[b] = compress_8<MomentCode::kSigned8, rounding>(c, block);
      return;
    case MomentCode::kUnsigned8:
      c.scales[b] = compress_8<MomentCode::kUnsigned8, rounding>(c, block);
      return;
  }
}

}  // namespace

void expand_moment(const CompactMoment& c, Range blocks) {
  for (std::int64_t b = blocks.begin; b < blocks.end; ++b) {
    const MomentBlock block = block_of(c, b);
    if (c.code == MomentCode::kBf16) {
      const std::uint16_t* const codes = static_cast<const std::uint16_t*>(c.codes) + block.at;
      for (std::int64_t i = 0; i < block.size; ++i)
        block.numbers[i] = moment_codes::from_16(codes[i]);
    } else if (c.code == MomentCode::kSigned8) {
      expand_8<MomentCode::kSigned8>(c, block, c.scales[b]);
    } else {
      expand_8<MomentCode::kUnsigned8>(c, block, c.scales[b]);
    }
  }
}

void compress_moment(const CompactMoment& c, Range blocks) {
  for (std::int64_t b = blocks.begin; b < blocks.end; ++b) {
    if (c.rounding == MomentRounding::kNearest)
      compress_block<MomentRounding::kNearest>(c, b);
    else
      compress_block<MomentRounding::kStochastic>(c, b);
  }
}

}  // namespace troupe::kernels::plain
