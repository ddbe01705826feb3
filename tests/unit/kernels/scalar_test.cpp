// exp, tanh and log: accuracy over dense sweeps, the edges, and the same bits for one number and a
// row.
#include "kernels/scalar.hpp"

#include "tests/unit/kernels/support.hpp"

namespace troupe::kernels::test {
namespace {

// Distance of `actual` from the exact value, in units of the last place of the exact value.
double ulps(float actual, double exact) {
  const int exponent = std::ilogb(exact);
  return std::abs(static_cast<double>(actual) - exact) / std::ldexp(1.0, exponent - 23);
}

TEST(ExpF32, WithinTwoUlpOfDouble) {
  flush_denormals();
  double worst = 0.0;
  for (std::uint32_t bits = 0x20000000; bits < 0x42b17000; bits += 181) {  // 1e-19 .. 88.7
    const float x = std::bit_cast<float>(bits);
    if (x <= 88.72f) worst = std::max(worst, ulps(exp_f32(x), std::exp(static_cast<double>(x))));
    if (x <= 87.33f) worst = std::max(worst, ulps(exp_f32(-x), std::exp(-static_cast<double>(x))));
  }
  EXPECT_LE(worst, 1.1);
}

TEST(ExpF32, Edges) {
  flush_denormals();
  EXPECT_EQ(exp_f32(0.0f), 1.0f);
  EXPECT_EQ(exp_f32(-0.0f), 1.0f);
  EXPECT_EQ(exp_f32(1e-45f), 1.0f);
  EXPECT_EQ(exp_f32(-87.34f), 0.0f);
  EXPECT_EQ(exp_f32(-kInf), 0.0f);
  EXPECT_EQ(exp_f32(-1e30f), 0.0f);
  EXPECT_GT(exp_f32(-87.33f), 0.0f);
  EXPECT_EQ(exp_f32(88.73f), kInf);
  EXPECT_EQ(exp_f32(1e30f), kInf);
  EXPECT_EQ(exp_f32(kInf), kInf);
  EXPECT_LT(exp_f32(88.72f), kInf);
  EXPECT_TRUE(std::isnan(exp_f32(kNan)));
}

// FNV-1a over the bits of f(i / 64): the arithmetic is part of every recorded result, so a change
// of one bit anywhere must be meant.
template <class Function>
std::uint64_t digest(Function f, int begin, int end) {
  std::uint64_t hash = 14695981039346656037u;
  for (int i = begin; i <= end; ++i)
    hash = (hash ^ std::bit_cast<std::uint32_t>(f(static_cast<float>(i) / 64))) * 1099511628211u;
  return hash;
}

TEST(ExpF32, KnownBits) {
  flush_denormals();
  EXPECT_EQ(exp_f32(1.0f), 0x1.5bf0a8p+1f);
  EXPECT_EQ(exp_f32(-1.0f), 0x1.78b564p-2f);
  EXPECT_EQ(exp_f32(88.72f), 0x1.fe8c9p+127f);
  EXPECT_EQ(exp_f32(-87.33f), 0x1.01ae34p-126f);
  EXPECT_EQ(digest(exp_f32, -8000, 8000), 0x1481c8975b95e0bcu);
}

TEST(TanhF32, WithinTwoUlpOfDouble) {
  flush_denormals();
  double worst = 0.0;
  for (std::uint32_t bits = 0x20000000; bits < 0x41b17000; bits += 181) {  // 1e-19 .. 22
    const float x = std::bit_cast<float>(bits);
    worst = std::max(worst, ulps(tanh_f32(x), std::tanh(static_cast<double>(x))));
    EXPECT_EQ(tanh_f32(-x), -tanh_f32(x));
  }
  EXPECT_LE(worst, 2.0);
}

TEST(TanhF32, Edges) {
  flush_denormals();
  EXPECT_EQ(tanh_f32(0.0f), 0.0f);
  EXPECT_EQ(tanh_f32(1e-30f), 1e-30f);
  EXPECT_EQ(tanh_f32(20.0f), 1.0f);
  EXPECT_EQ(tanh_f32(-1e30f), -1.0f);
  EXPECT_EQ(tanh_f32(kInf), 1.0f);
  EXPECT_EQ(tanh_f32(-kInf), -1.0f);
  EXPECT_TRUE(std::isnan(tanh_f32(kNan)));
}

TEST(TanhF32, KnownBits) {
  flush_denormals();
  EXPECT_EQ(tanh_f32(1.0f), 0x1.85efacp-1f);
  EXPECT_EQ(digest(tanh_f32, -1000, 1000), 0x7d77671cc185e2ffu);
}

TEST(LogF32, KnownBits) {
  flush_denormals();
  EXPECT_EQ(log_f32(2.0f), 0x1.62e43p-1f);
  EXPECT_EQ(digest(log_f32, 1, 16000), 0xed0c2198acc717c8u);
}

TEST(LogF32, WithinOneUlpOfDouble) {
  flush_denormals();
  double worst = 0.0;
  for (std::uint32_t bits = 0x00800000; bits < 0x7f800000; bits += 9973) {
    const float x = std::bit_cast<float>(bits);
    if (x != 1.0f) worst = std::max(worst, ulps(log_f32(x), std::log(static_cast<double>(x))));
  }
  for (std::uint32_t bits = 0x3f700000; bits < 0x3f900000; bits += 7) {
    const float x = std::bit_cast<float>(bits);
    if (x != 1.0f) worst = std::max(worst, ulps(log_f32(x), std::log(static_cast<double>(x))));
  }
  EXPECT_LE(worst, 0.51);
}

TEST(LogF32, Edges) {
  EXPECT_EQ(log_f32(1.0f), 0.0f);
  EXPECT_EQ(log_f32(0.0f), -kInf);
  EXPECT_EQ(log_f32(kInf), kInf);
  EXPECT_TRUE(std::isnan(log_f32(-1.0f)));
  EXPECT_TRUE(std::isnan(log_f32(kNan)));
}

class ExpRow : public VectorLevel {};
TROUPE_ALL_LEVELS(ExpRow);

TEST_P(ExpRow, SameBitsAsOneNumberAtATime) {
  for (const std::int64_t count : {1, 15, 16, 17, 100003}) {
    Guarded x(count);
    std::mt19937 engine(3);
    std::uniform_int_distribution<std::uint32_t> any;
    for (std::int64_t i = 0; i < count; ++i)
      x[i] = i % 2 == 0 ? std::bit_cast<float>(any(engine))
                        : static_cast<float>(any(engine)) / 4294967296.0f * 200.0f - 100.0f;
    Guarded expected(count);
    for (std::int64_t i = 0; i < count; ++i)
      expected[i] = exp_f32(x[i]);
    Guarded actual(count);
    level().exp(x.data(), actual.data(), count);
    EXPECT_TRUE(same_bits(expected, actual));
    level().exp(x.data(), x.data(), count);  // in place
    EXPECT_TRUE(same_bits(expected, x));
  }
}

}  // namespace
}  // namespace troupe::kernels::test
