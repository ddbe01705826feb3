// Weighted sums of rows found by number: hand-worked values, same bits on every level.
#include "tests/unit/kernels/support.hpp"

namespace troupe::kernels::test {
namespace {

class MixRowsAllLevels : public VectorLevel {};
TROUPE_ALL_LEVELS(MixRowsAllLevels);

TEST_P(MixRowsAllLevels, ByHand) {
  // Two rows of three columns that chose rows (2, 0) and (1, 2) of y.
  const float y[9] = {1, 2, 3, 10, 20, 30, 100, 200, 300};
  const std::int32_t place[4] = {2, 0, 1, 2};
  const float weight[4] = {0.5f, 2.0f, 0.25f, 1.0f};
  const float extra[6] = {7, 7, 7, 8, 8, 8};
  const float extra_weight[4] = {-1, -1, 0.5f, -1};  // of row r at 2 r
  const float residual[6] = {1000, 1000, 1000, 2000, 2000, 2000};
  Guarded out(6);
  MixRows mix{.n = 3,
              .choices = 2,
              .y = y,
              .ldy = 3,
              .place = place,
              .weight = weight,
              .extra = nullptr,
              .residual = residual,
              .ldr = 3,
              .out = out.data(),
              .ldo = 3};
  level().mix_rows(mix, {0, 2});
  EXPECT_EQ(out[0], 1052.0f);  // 1000 + 100/2 + 1*2
  EXPECT_EQ(out[2], 1156.0f);
  EXPECT_EQ(out[3], 2102.5f);  // 2000 + 10/4 + 100
  mix.extra = extra;
  mix.ldx = 3;
  mix.extra_weight = extra_weight;
  mix.ldw = 2;
  level().mix_rows(mix, {1, 2});
  EXPECT_EQ(out[0], 1052.0f);  // not in the range
  EXPECT_EQ(out[3], 2106.5f);
  mix.weight = nullptr;
  mix.extra_weight = nullptr;
  level().mix_rows(mix, {0, 1});
  EXPECT_EQ(out[1], 1209.0f);  // 1000 + 200 + 2 + 7
  EXPECT_TRUE(out.guards_intact());
}

// The sum starts from 0 and the residual comes last: with the residual first, the small terms
// would be lost in it one by one.
TEST_P(MixRowsAllLevels, TheResidualIsAddedLast) {
  const float y[3] = {1.0f, 1.0f, 1.0f};
  const std::int32_t place[3] = {0, 1, 2};
  float out = 16777216.0f;  // 2^24: adding 1 rounds back to it
  const MixRows mix{.n = 1,
                    .choices = 3,
                    .y = y,
                    .ldy = 1,
                    .place = place,
                    .residual = &out,
                    .ldr = 1,
                    .out = &out,
                    .ldo = 1};
  level().mix_rows(mix, {0, 1});
  EXPECT_EQ(out, 16777220.0f);  // 2^24 + 3, to even
}

class MixRowsVector : public VectorLevel {};
TROUPE_VECTOR_LEVELS(MixRowsVector);

TEST_P(MixRowsVector, SameBitsAsReferenceOverOddWidths) {
  for (const std::int64_t n : {1, 15, 16, 17, 63, 64, 65, 100, 577}) {
    for (const std::int64_t choices : {1, 2, 8}) {
      const std::int64_t rows = 5, ld = n + 3;
      const Guarded y = Guarded::random(rows * choices * ld, 1);
      const Guarded weight = Guarded::random(rows * choices, 2);
      const Guarded extra = Guarded::random(rows * ld, 3), residual = Guarded::random(rows * ld, 4);
      const Guarded extra_weight = Guarded::random(rows, 5);
      std::vector<std::int32_t> place;
      for (std::int64_t i = 0; i < rows * choices; ++i)
        place.push_back(static_cast<std::int32_t>(i * 7 % (rows * choices)));
      for (const bool weighted : {true, false}) {
        Guarded expected(rows * ld, 3.0f), actual(rows * ld, 3.0f);
        MixRows mix{.n = n,
                    .choices = choices,
                    .y = y.data(),
                    .ldy = ld,
                    .place = place.data(),
                    .weight = weighted ? weight.data() : nullptr,
                    .extra = extra.data(),
                    .ldx = ld,
                    .extra_weight = weighted ? extra_weight.data() : nullptr,
                    .ldw = 1,
                    .residual = residual.data(),
                    .ldr = ld,
                    .out = expected.data(),
                    .ldo = ld};
        reference().mix_rows(mix, {0, rows});
        mix.out = actual.data();
        level().mix_rows(mix, {0, 2});
        level().mix_rows(mix, {2, rows});
        ASSERT_TRUE(same_bits(expected, actual)) << n << " columns, " << choices << " choices";
      }
    }
  }
}

}  // namespace
}  // namespace troupe::kernels::test
