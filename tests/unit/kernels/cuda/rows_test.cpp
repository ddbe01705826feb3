// Operations on rows: the reference's bits over odd shapes, ranges, infinities and NaN.
#include "tests/unit/kernels/cuda/fixture.hpp"

namespace troupe::kernels::cuda::test {
namespace {

class CudaRows : public OnDevice {};

TEST_F(CudaRows, RmsnormByHand) {
  // Mean square of (1, 2, 3, 4, 5, 5, 4, 2) is 12.5; with eps 3.5 the root is 4.
  Array<float> x({1, 2, 3, 4, 5, 5, 4, 2}), weight(8, 2.0f), y(8), inv(1);
  ops().rmsnorm({.d = 8,
                 .x = x.data(),
                 .ldx = 8,
                 .weight = weight.data(),
                 .eps = 3.5f,
                 .y = y.data(),
                 .ldy = 8,
                 .inv_rms = inv.data()},
                {0, 1});
  EXPECT_EQ(inv.read()[0], 0.25f);
  EXPECT_EQ(y.read(), (std::vector<float>{0.5f, 1, 1.5f, 2, 2.5f, 2.5f, 2, 1}));
}

TEST_F(CudaRows, RmsnormHasTheBitsOfTheReference) {
  constexpr std::int64_t kRows = 21;
  // From 256 numbers on a block reads the row first; 13000 do not fit into its memory.
  for (const std::int64_t d : {1, 7, 16, 20, 64, 100, 255, 256, 577, 4096, 13000})
    for (const float special : {0.5f, kInf, kNan, 1e30f, 1e-40f}) {
      if (d > 1000 && special != kNan && special != 0.5f) continue;
      const std::int64_t ld = d + 3;
      Array<float> x(normal(kRows * ld, 3)), weight(normal(d, 4));
      x.host()[static_cast<std::size_t>(5 * ld + d / 2)] = special;
      Array<float> in(x.host()), y(static_cast<std::size_t>(kRows * ld)), inv(kRows);
      reference().rmsnorm({.d = d,
                           .x = x.host().data(),
                           .ldx = ld,
                           .weight = weight.host().data(),
                           .eps = 1e-5f,
                           .y = y.host().data(),
                           .ldy = ld,
                           .inv_rms = inv.host().data()},
                          {2, kRows});
      ops().rmsnorm({.d = d,
                     .x = in.data(),
                     .ldx = ld,
                     .weight = weight.data(),
                     .eps = 1e-5f,
                     .y = y.data(),
                     .ldy = ld,
                     .inv_rms = inv.data()},
                    {2, kRows});
      EXPECT_TRUE(same(y, y.host())) << d << " " << special;
      EXPECT_TRUE(same(inv, inv.host())) << d << " " << special;
    }
}

TEST_F(CudaRows, HeadsHaveTheBitsOfTheReferenceInPlace) {
  constexpr std::int64_t kRows = 21;
  for (const std::int64_t d : {20, 300}) {
    const std::int64_t ld = 5 * d + 3;
    Array<float> x(normal(kRows * ld, 3)), weight(normal(d, 4)), inv(3 * 30, 7.0f);
    const auto heads = [&](float* data, const float* by, float* to) {
      return RmsNorm{.heads = 3,
                     .d = d,
                     .x = data,
                     .ldx = ld,
                     .weight = by,
                     .eps = 1e-5f,
                     .y = data,
                     .ldy = ld,
                     .inv_rms = to,
                     .ldi = 30};
    };
    ops().rmsnorm(heads(x.data(), weight.data(), inv.data()), {2, kRows});
    reference().rmsnorm(heads(x.host().data(), weight.host().data(), inv.host().data()),
                        {2, kRows});
    EXPECT_TRUE(same(x, x.host())) << d;
    EXPECT_TRUE(same(inv, inv.host())) << d;
  }
}

TEST_F(CudaRows, CopiesAddsAndZeroes) {
  Array<float> x(normal(70 * 5, 1)), y(70 * 4), sum(70 * 4);
  Array<std::int32_t> from({4, 0, 2, 2}), to({3, 1, 0, 2});
  ops().copy_rows({.columns = 69,
                   .from = x.data(),
                   .ldf = 70,
                   .from_row = from.data(),
                   .to = y.data(),
                   .ldt = 70,
                   .to_row = to.data()},
                  {0, 4});
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t c = 0; c < 69; ++c)
      y.host()[static_cast<std::size_t>(to.host()[i]) * 70 + c] =
          x.host()[static_cast<std::size_t>(from.host()[i]) * 70 + c];
  EXPECT_TRUE(same(y, y.host()));
  ops().add_rows({.columns = 70,
                  .a = x.data(),
                  .lda = 70,
                  .b = y.data(),
                  .ldb = 70,
                  .out = sum.data(),
                  .ldo = 70},
                 {1, 3});
  for (std::size_t i = 70; i < 210; ++i)
    sum.host()[i] = x.host()[i] + y.host()[i];
  EXPECT_TRUE(same(sum, sum.host()));
  ops().zero(sum.data(), {75, 200});
  std::fill(sum.host().begin() + 75, sum.host().begin() + 200, 0.0f);
  EXPECT_TRUE(same(sum, sum.host()));
}

// A block has 1024 numbers.
TEST_F(CudaRows, ScaleHasTheBitsOfTheReferenceAlsoInPlace) {
  Array<float> x(normal(2100, 6)), y(2100, 7.0f);
  const float special[] = {kInf, kNan, -0.0f, 1e-38f, -1e-40f, 3e38f};
  std::copy_n(special, 6, x.host().begin() + 1000);
  Array<float> in(x.host());
  for (const Range part : {Range{3, 2099}, Range{5, 5}, Range{1023, 1025}}) {
    reference().scale(x.host().data(), 0.3f, y.host().data(), part);
    ops().scale(in.data(), 0.3f, y.data(), part);
    EXPECT_TRUE(same(y, y.host())) << part.begin;
  }
  reference().scale(x.host().data(), -2.5f, x.host().data(), {1, 2100});
  ops().scale(in.data(), -2.5f, in.data(), {1, 2100});
  EXPECT_TRUE(same(in, x.host()));
}

}  // namespace
}  // namespace troupe::kernels::cuda::test
