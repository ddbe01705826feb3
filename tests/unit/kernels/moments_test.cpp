// Moments in fewer bits: codes worked out by hand, rounding that has the right mean, and numbers
// from codes, which become the same codes again.
#include "tests/unit/kernels/support.hpp"

#include <cmath>
#include <vector>

namespace troupe::kernels::test {
namespace {

using moment_codes::from_8;
using moment_codes::to_8;

constexpr MomentRounding kNearest = MomentRounding::kNearest;
constexpr MomentRounding kStochastic = MomentRounding::kStochastic;

// A moment whose numbers are all expanded.
struct Held {
  Held(MomentCode code, std::int64_t count)
      : numbers(static_cast<std::size_t>(count)),
        codes(static_cast<std::size_t>(count * code_bytes(code))),
        scales(static_cast<std::size_t>((count + kNormChunk - 1) / kNormChunk)) {
    moment.code = code;
    moment.count = count;
    moment.codes = codes.data();
    moment.scales = scales.data();
    moment.numbers = numbers.data();
  }
  Range blocks() const { return {0, std::ssize(scales)}; }
  std::vector<float> numbers;
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;
  CompactMoment moment;
};

std::vector<float> squares(std::int64_t count) {
  std::vector<float> values;
  const Guarded drawn = Guarded::random(count, 7);
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(drawn[i] * drawn[i] * 1e-6f);
  return values;
}

TEST(MomentCodes, HaveHandWorkedValues) {
  // Scale 2. Signed codes: 120 is 1, each 8 less half of it; 116 is (1 + 4/8) / 2.
  const auto signed_code = [](float x) {
    return int{to_8(MomentCode::kSigned8, x, 2, kNearest, 0)};
  };
  EXPECT_EQ(signed_code(2), 120);
  EXPECT_EQ(signed_code(1), 112);
  EXPECT_EQ(signed_code(1.5f), 116);
  EXPECT_EQ(signed_code(-1.5f), 128 + 116);
  EXPECT_EQ(signed_code(0), 0);
  EXPECT_EQ(signed_code(-0.0f), 0);
  EXPECT_EQ(signed_code(1.56f), 116);  // 0.78: nearer to 0.75 than to 0.8125
  EXPECT_EQ(signed_code(1.57f), 117);
  EXPECT_EQ(signed_code(std::ldexp(1.0f, -30)), 0);
  EXPECT_EQ(from_8(MomentCode::kSigned8, 128 + 116, 2), -1.5f);
  EXPECT_EQ(from_8(MomentCode::kSigned8, 1, 2), std::ldexp(1.125f, -14));  // the least
  // Unsigned: 248 is 1.
  const auto unsigned_code = [](float x) {
    return int{to_8(MomentCode::kUnsigned8, x, 4, kNearest, 0)};
  };
  EXPECT_EQ(unsigned_code(4), 248);
  EXPECT_EQ(unsigned_code(3), 244);
  EXPECT_EQ(unsigned_code(0), 0);
  EXPECT_EQ(unsigned_code(1e-30f), 1) << "above 0 stays above 0";
  EXPECT_EQ(from_8(MomentCode::kUnsigned8, 244, 4), 3.0f);
  EXPECT_EQ(from_8(MomentCode::kUnsigned8, 1, 4), std::ldexp(1.125f, -29));
  EXPECT_EQ(int{to_8(MomentCode::kUnsigned8, 1, 0, kNearest, 0)}, 0) << "a block of zeros";
  // bf16 keeps 7 bits of mantissa: 1 + 1/128 + 3/1024.
  EXPECT_EQ(moment_codes::from_16(moment_codes::to_16(1.0107421875f, kNearest, 0)), 1.0078125f);
}

TEST(MomentCodes, RoundUpWithTheProbabilityOfTheDistance) {
  // 0.78 is 0.48 of the way from 0.75 to 0.8125. 100,000 draws: 5 deviations are 0.008.
  std::int64_t up = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const std::uint8_t code = to_8(MomentCode::kSigned8, 0.78f, 1, kStochastic,
                                   moment_codes::noise(3, static_cast<std::uint32_t>(i)));
    ASSERT_TRUE(code == 116 || code == 117) << int{code};
    up += code == 117 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(up) / kDraws, 0.48, 0.008);
}

TEST(MomentCodes, DrawAnewForEachStepAndElement) {
  using moment_codes::block_seed;
  using moment_codes::noise;
  EXPECT_NE(noise(1, 5), noise(1, 6));
  EXPECT_NE(noise(1, 5), noise(2, 5));
  EXPECT_EQ(block_seed(1, 4096), 1u);
  EXPECT_NE(block_seed(1, std::int64_t{1} << 32), 1u);
}

TEST(Moments, ComeBackNearAndThenStay) {
  constexpr std::int64_t kCount = 2 * kNormChunk + 77;
  for (const MomentCode code : {MomentCode::kBf16, MomentCode::kSigned8, MomentCode::kUnsigned8}) {
    Held held(code, kCount);
    std::vector<float> values = squares(kCount);
    for (std::size_t i = 0; code != MomentCode::kUnsigned8 && i < values.size(); i += 2)
      values[i] = -values[i];
    values[3] = 0;
    held.numbers = values;
    held.moment.numbers = held.numbers.data();
    held.moment.seed = 11;
    reference().compress_moment(held.moment, held.blocks());
    reference().expand_moment(held.moment, held.blocks());
    const float share = code == MomentCode::kBf16 ? 1.0f / 128 : 1.0f / 8;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float scale =
          has_scales(code) ? held.scales[i / static_cast<std::size_t>(kNormChunk)] : 0.0f;
      const float least = code == MomentCode::kSigned8 ? std::ldexp(scale, -14) : 1e-12f;
      ASSERT_NEAR(held.numbers[i], values[i], std::fabs(values[i]) * share + least) << i;
    }
    // What came from codes becomes these codes again.
    const std::vector<std::uint8_t> codes = held.codes;
    const std::vector<float> scales = held.scales;
    held.moment.rounding = kNearest;
    reference().compress_moment(held.moment, held.blocks());
    EXPECT_EQ(held.codes, codes);
    EXPECT_EQ(held.scales, scales);
  }
}

class MomentLevels : public VectorLevel {};
TROUPE_VECTOR_LEVELS(MomentLevels);

TEST_P(MomentLevels, SameBitsAsReference) {
  constexpr std::int64_t kCount = 2 * kNormChunk + 77;
  for (const MomentCode code : {MomentCode::kBf16, MomentCode::kSigned8, MomentCode::kUnsigned8}) {
    Held expected(code, kCount), actual(code, kCount);
    expected.numbers = squares(kCount);
    for (std::size_t i = 0; code != MomentCode::kUnsigned8 && i < expected.numbers.size(); i += 3)
      expected.numbers[i] = -expected.numbers[i];
    actual.numbers = expected.numbers;
    for (Held* held : {&expected, &actual})
      held->moment.numbers = held->numbers.data();
    reference().compress_moment(expected.moment, expected.blocks());
    level().compress_moment(actual.moment, actual.blocks());
    EXPECT_EQ(actual.codes, expected.codes);
    EXPECT_EQ(actual.scales, expected.scales);
    reference().expand_moment(expected.moment, expected.blocks());
    level().expand_moment(actual.moment, actual.blocks());
    EXPECT_EQ(actual.numbers, expected.numbers);
  }
}

// Two ranks have the codes that one process has.
TEST(Moments, AreRoundedByTheirPlaceInTheWhole) {
  constexpr std::int64_t kBlocks = 4;
  Held whole(MomentCode::kSigned8, kBlocks * kNormChunk);
  const std::vector<float> values = squares(kBlocks * kNormChunk);
  whole.numbers = values;
  whole.moment.numbers = whole.numbers.data();
  reference().compress_moment(whole.moment, whole.blocks());
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    Held part(MomentCode::kSigned8, kBlocks / 2 * kNormChunk);
    part.moment.block_step = 2;
    part.moment.block_at = rank;
    const auto block_at = [&](std::int64_t block) { return (block * 2 + rank) * kNormChunk; };
    for (std::int64_t block = 0; block < kBlocks / 2; ++block)
      std::copy_n(values.begin() + block_at(block), kNormChunk,
                  part.numbers.begin() + block * kNormChunk);
    // The second block alone, from numbers that begin there.
    reference().compress_moment(part.moment, {0, 1});
    part.moment.first = 1;
    part.moment.numbers = part.numbers.data() + kNormChunk;
    reference().compress_moment(part.moment, {1, 2});
    for (std::int64_t block = 0; block < kBlocks / 2; ++block)
      EXPECT_TRUE(std::equal(part.codes.begin() + block * kNormChunk,
                             part.codes.begin() + (block + 1) * kNormChunk,
                             whole.codes.begin() + block_at(block)))
          << rank << ' ' << block;
  }
}

}  // namespace
}  // namespace troupe::kernels::test
