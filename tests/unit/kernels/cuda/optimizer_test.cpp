// The optimiser, checks of gradients and the probes of the device.
#include "tests/unit/kernels/cuda/fixture.hpp"

namespace troupe::kernels::cuda::test {
namespace {

class CudaOptimizer : public OnDevice {};

TEST_F(CudaOptimizer, AdamwHasTheBitsOfTheReference) {
  constexpr std::int64_t kCount = 2600;
  std::vector<float> grads = normal(kCount, 2);
  grads[5] = kInf;
  grads[6] = kNan;
  grads[7] = 1e-40f;
  grads[8] = 1e-25f;  // the square is a denormal
  grads[9] = 1e25f;
  grads[10] = -0.0f;
  std::vector<float> second = normal(kCount, 4);
  for (float& v : second)
    v = v * v;
  Array<float> param(normal(kCount, 1)), grad(grads), m(normal(kCount, 3)), v(second);
  const auto args = [&](bool host) {
    const auto at = [&](Array<float>& a) { return host ? a.host().data() : a.data(); };
    return AdamW{.param = at(param),
                 .grad = at(grad),
                 .m = at(m),
                 .v = at(v),
                 .lr = 1e-3f,
                 .beta1 = 0.9f,
                 .beta2 = 0.95f,
                 .eps = 1e-8f,
                 .weight_decay = 0.1f,
                 .grad_scale = 0.7f,
                 .correction1 = 0.19f,
                 .correction2 = 0.0975f};
  };
  for (const auto& [begin, end] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{3, 2599}, {0, 2}, {7, 7}}) {
    reference().adamw(args(true), {begin, end});
    ops().adamw(args(false), {begin, end});
  }
  EXPECT_TRUE(same(param, param.host()));
  EXPECT_TRUE(same(m, m.host()));
  EXPECT_TRUE(same(v, v.host()));
}

TEST_F(CudaOptimizer, SgdHasTheBitsOfTheReference) {
  constexpr std::int64_t kCount = 2600;
  Array<float> param(normal(kCount, 1)), grad(normal(kCount, 2)), m(normal(kCount, 3));
  const auto args = [&](bool host) {
    const auto at = [&](Array<float>& a) { return host ? a.host().data() : a.data(); };
    return Sgd{.param = at(param),
               .grad = at(grad),
               .m = at(m),
               .lr = 1e-3f,
               .momentum = 0.9f,
               .weight_decay = 0.1f,
               .grad_scale = 0.7f};
  };
  reference().sgd(args(true), {3, 2599});
  ops().sgd(args(false), {3, 2599});
  EXPECT_TRUE(same(param, param.host()));
  EXPECT_TRUE(same(m, m.host()));
}

TEST_F(CudaOptimizer, MomentsInFewerBitsHaveTheBitsOfTheReference) {
  constexpr std::int64_t kCount = 2 * kNormChunk + 100;
  for (const MomentCode code : {MomentCode::kBf16, MomentCode::kSigned8, MomentCode::kUnsigned8}) {
    std::vector<float> values = normal(kCount, 5);
    for (float& value : values)
      value = code == MomentCode::kUnsigned8 ? value * value * 1e-9f : value * 1e-3f;
    values[1] = 0;
    Array<float> numbers(values), scales(3, 0.0f);
    Array<std::uint8_t> codes(static_cast<std::size_t>(kCount * code_bytes(code)));
    const auto args = [&](bool host) {
      return CompactMoment{.code = code,
                           .count = kCount,
                           .codes = host ? codes.host().data() : codes.data(),
                           .scales = host ? scales.host().data() : scales.data(),
                           .numbers = host ? numbers.host().data() : numbers.data(),
                           .seed = 9,
                           .block_step = 3,
                           .block_at = 1};
    };
    for (const Range& blocks : {Range{0, 1}, Range{1, 3}}) {
      reference().compress_moment(args(true), blocks);
      ops().compress_moment(args(false), blocks);
    }
    EXPECT_EQ(codes.read(), codes.host());
    if (has_scales(code)) {
      EXPECT_TRUE(same(scales, scales.host()));
    }
    reference().expand_moment(args(true), {0, 3});
    ops().expand_moment(args(false), {0, 3});
    EXPECT_TRUE(same(numbers, numbers.host()));
  }
}

TEST_F(CudaOptimizer, SquaresByHand) {
  Array<float> x({1, 2, 3, 4});
  Array<double> sums(1, -1.0);
  ops().sum_squares({.x = x.data(), .count = 4, .sums = sums.data()}, {0, 1});
  EXPECT_EQ(sums.read()[0], 30.0);
}

TEST_F(CudaOptimizer, SumsOfSquaresHaveTheBitsOfTheReference) {
  constexpr std::int64_t kCount = 19 * kNormChunk + 1001;
  std::vector<float> values = normal(kCount, 1, 3.0f);
  values[1] = 1e30f;
  values[kNormChunk + 1] = kNan;
  values[2 * kNormChunk + 9] = kInf;
  values[3 * kNormChunk] = 1e-40f;
  Array<float> x(values);
  Array<double> sums(20, -1.0);
  for (const auto& [begin, end] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 18}, {18, 20}}) {
    reference().sum_squares({.x = x.host().data(), .count = kCount, .sums = sums.host().data()},
                            {begin, end});
    ops().sum_squares({.x = x.data(), .count = kCount, .sums = sums.data()}, {begin, end});
  }
  const std::vector<double> actual = sums.read();
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_TRUE(std::bit_cast<std::uint64_t>(actual[i]) ==
                    std::bit_cast<std::uint64_t>(sums.host()[i]) ||
                (std::isnan(actual[i]) && std::isnan(sums.host()[i])))
        << i;
}

TEST_F(CudaOptimizer, FindsWhatIsNotFinite) {
  constexpr std::int64_t kCount = 3000;
  Array<float> clean(normal(kCount, 1));
  EXPECT_TRUE(ops().all_finite(clean.data(), kCount));
  EXPECT_TRUE(ops().all_finite(clean.data(), 0));
  for (const float bad : {kInf, -kInf, kNan})
    for (const std::size_t at : {0, 1023, 1024, 2999}) {
      std::vector<float> values = clean.host();
      values[at] = bad;
      Array<float> x(values);
      EXPECT_FALSE(ops().all_finite(x.data(), kCount)) << bad << at;
      EXPECT_EQ(ops().all_finite(x.data(), 2999), at == 2999);
    }
  Array<float> edges({std::numeric_limits<float>::max(), 1e-45f, -0.0f});
  EXPECT_TRUE(ops().all_finite(edges.data(), 3));
}

TEST_F(CudaOptimizer, ProbesDoWhatTheyCount) {
  float once = 1.0f, twice = 1.0f;
  const double one = ops().fma_probe(10, &once), two = ops().fma_probe(20, &twice);
  EXPECT_GT(one, 0.0);
  EXPECT_EQ(two, 2.0 * one);
  EXPECT_NE(once, twice);  // chains on their way to 2
  for (const std::int64_t skip : {0, 1, 3}) {
    Array<float> ones(40000, 1.0f);
    EXPECT_EQ(ops().read_probe(ones.data() + skip, 40000 - 5), 40000.0f - 5.0f);
    EXPECT_EQ(ops().read_probe(ones.data() + skip, 2), 2.0f);
  }
}

}  // namespace
}  // namespace troupe::kernels::cuda::test
