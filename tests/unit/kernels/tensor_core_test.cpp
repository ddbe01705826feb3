// Sums of tensor cores, worked out by hand. tests/oracle/tensor_core_test.py compares 100,000.
#include "kernels/tensor_core.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace troupe::kernels {
namespace {

constexpr std::uint16_t kOne = 0x3f80, kMinusOne = 0xbf80, kInf = 0x7f80;

// 2^exponent, normal in bfloat16.
constexpr std::uint16_t power(int exponent) {
  return static_cast<std::uint16_t>((exponent + 127) << 7);
}

TensorFactors of(std::initializer_list<std::uint16_t> numbers) {
  std::array<std::uint16_t, kTensorDepth> all{};
  std::ranges::copy(numbers, all.begin());
  return TensorFactors(all);
}

float sum(const TensorCore& core, float c, const TensorFactors& a, const TensorFactors& b) {
  return std::bit_cast<float>(tensor_core_sum(core, std::bit_cast<std::uint32_t>(c), a, b));
}

TEST(TensorCore, AddsProductsExactlyWhereTheyFit) {
  // 2 + 1.5 * 3 - 0.25
  const TensorFactors a = of({0x3fc0, kMinusOne}), b = of({0x4040, power(-2)});
  for (const TensorCore& core : {kAmpereTensorCore, kHopperTensorCore})
    EXPECT_EQ(sum(core, 2.0f, a, b), 6.25f);
}

TEST(TensorCore, CutsEachTermBelowTheLargest) {
  // Beside 1 - 1, a product counts down to 2^-25 on Hopper and to 2^-24 on Ampere.
  for (const int exponent : {-24, -25, -26}) {
    const TensorFactors a = of({kOne, power(exponent)}), b = of({kOne, kOne});
    EXPECT_EQ(sum(kHopperTensorCore, -1.0f, a, b), exponent >= -25 ? std::ldexp(1.0f, exponent) : 0)
        << exponent;
    EXPECT_EQ(sum(kAmpereTensorCore, -1.0f, a, b), exponent >= -24 ? std::ldexp(1.0f, exponent) : 0)
        << exponent;
  }
}

TEST(TensorCore, CutsTowardsZero) {
  // -1.5 * 2^-25 is cut to -2^-25 at the 25th bit; 1 + 1.5 * 2^-23 is cut to 1 + 2^-23.
  const TensorFactors a = of({kOne, 0xbfc0}), b = of({kOne, power(-25)});
  EXPECT_EQ(sum(kHopperTensorCore, -1.0f, a, b), -0x1p-25f);
  const TensorFactors c = of({0x3fc0}), d = of({power(-23)});
  EXPECT_EQ(sum(kHopperTensorCore, 1.0f, c, d), 1.0f + 0x1p-23f);
}

TEST(TensorCore, AProductsExponentIsTheSumOfItsFactors) {
  // 1.5 * 1.5 = 2.25 has exponent 0, so 2^-25 beside it still counts.
  const TensorFactors a = of({0x3fc0, power(-25)}), b = of({0x3fc0, kOne});
  EXPECT_EQ(sum(kHopperTensorCore, -2.25f, a, b), 0.0f);  // the accumulator's exponent is 1
  const TensorFactors c = of({0x3fc0, 0xbfc0, power(-25)}), d = of({0x3fc0, 0x3fc0, kOne});
  EXPECT_EQ(sum(kHopperTensorCore, 0.0f, c, d), 0x1p-25f);
}

TEST(TensorCore, AmpereAddsEightAtATime) {
  // 1 + 2^-24 - 1: in one sum 2^-24; in two, the first half is cut to f32 before the second.
  const TensorFactors a = of({kOne, power(-24), 0, 0, 0, 0, 0, 0, kMinusOne});
  const TensorFactors b = of({kOne, kOne, 0, 0, 0, 0, 0, 0, kOne});
  EXPECT_EQ(sum(kHopperTensorCore, 0.0f, a, b), 0x1p-24f);
  EXPECT_EQ(sum(kAmpereTensorCore, 0.0f, a, b), 0.0f);
}

TEST(TensorCore, KeepsSubnormalsAndCountsZeros) {
  const TensorFactors least = of({0x0001}), one = of({kOne});
  EXPECT_EQ(sum(kHopperTensorCore, 0.0f, least, one), 0x1p-133f);
  EXPECT_EQ(sum(kHopperTensorCore, 0x1p-149f, {}, {}), 0x1p-149f);
  // 2^-149 - 2^-157 and further products, which make it 2^-149 if they count. A zero counts with
  // 2^-133 on Hopper, so 2^-158 still does; with 2^-132 on Ampere, so 2^-156 does.
  const auto with = [](const TensorCore& core, std::size_t terms, int exponent) {
    std::array<std::uint16_t, kTensorDepth> a{}, b{};
    a[0] = power(-75) | 0x7f, b[0] = power(-75);
    for (std::size_t i = 1; i <= terms; ++i)
      a[i] = power(-79), b[i] = power(exponent + 79);
    return tensor_core_sum(core, 0, TensorFactors(a), TensorFactors(b));
  };
  EXPECT_EQ(with(kHopperTensorCore, 15, -158), 1u);
  EXPECT_EQ(with(kHopperTensorCore, 15, -159), 0u);
  EXPECT_EQ(with(kAmpereTensorCore, 7, -156), 1u);
  EXPECT_EQ(with(kAmpereTensorCore, 7, -157), 0u);
}

TEST(TensorCore, HasOneZeroAndOneNan) {
  EXPECT_EQ(tensor_core_sum(kHopperTensorCore, 0x80000000u, {}, {}), 0u);
  EXPECT_EQ(tensor_core_sum(kHopperTensorCore, 0, of({kInf}), {}), 0x7fffffffu);
  EXPECT_EQ(tensor_core_sum(kHopperTensorCore, 0xff800000u, of({kInf}), of({kOne})), 0x7fffffffu);
  EXPECT_EQ(tensor_core_sum(kHopperTensorCore, 0xffc00000u, {}, {}), 0x7fffffffu);
  EXPECT_EQ(tensor_core_sum(kHopperTensorCore, 0, of({kInf}), of({kMinusOne})), 0xff800000u);
  // Twice the largest power of two.
  const TensorFactors large = of({power(127), power(127)}), ones = of({kOne, kOne});
  EXPECT_EQ(tensor_core_sum(kHopperTensorCore, 0, large, ones), 0x7f800000u);
}

}  // namespace
}  // namespace troupe::kernels
