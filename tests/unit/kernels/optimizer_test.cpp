// AdamW against the textbook in double, gradient checks, and same bits on every level.
#include "tests/unit/kernels/support.hpp"

#include <algorithm>

namespace troupe::kernels::test {
namespace {

struct Adam {
  explicit Adam(std::int64_t count)
      : param(Guarded::random(count, 1)), grad(Guarded::random(count, 2)), m(count), v(count) {}
  AdamW args(int step) {
    return AdamW{.param = param.data(),
                 .grad = grad.data(),
                 .m = m.data(),
                 .v = v.data(),
                 .lr = 1e-2f,
                 .beta1 = 0.9f,
                 .beta2 = 0.95f,
                 .eps = 1e-8f,
                 .weight_decay = 0.1f,
                 .grad_scale = 0.5f,
                 .correction1 = static_cast<float>(1.0 - std::pow(0.9, step)),
                 .correction2 = static_cast<float>(1.0 - std::pow(0.95, step))};
  }
  Sgd sgd() {
    return Sgd{.param = param.data(),
               .grad = grad.data(),
               .m = m.data(),
               .lr = 1e-2f,
               .momentum = 0.9f,
               .weight_decay = 0.1f,
               .grad_scale = 0.5f};
  }
  Guarded param, grad, m, v;
};

class OptimizerAllLevels : public VectorLevel {};
TROUPE_ALL_LEVELS(OptimizerAllLevels);

TEST_P(OptimizerAllLevels, AdamwCloseToTheTextbook) {
  constexpr std::int64_t kCount = 100;
  Adam adam(kCount);
  std::vector<double> theta, m(kCount, 0.0), v(kCount, 0.0);
  for (std::int64_t i = 0; i < kCount; ++i)
    theta.push_back(static_cast<double>(adam.param[i]));
  for (int step = 1; step <= 20; ++step) {
    adam.grad = Guarded::random(kCount, static_cast<std::uint32_t>(step));
    for (std::size_t i = 0; i < kCount; ++i) {
      const double g = 0.5 * static_cast<double>(adam.grad[static_cast<std::int64_t>(i)]);
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.95 * v[i] + 0.05 * g * g;
      const double m_hat = m[i] / (1.0 - std::pow(0.9, step));
      const double v_hat = v[i] / (1.0 - std::pow(0.95, step));
      theta[i] -= 1e-2 * 0.1 * theta[i] + 1e-2 * m_hat / (std::sqrt(v_hat) + 1e-8);
    }
    level().adamw(adam.args(step), {0, 33});
    level().adamw(adam.args(step), {33, kCount});
  }
  for (std::size_t i = 0; i < kCount; ++i)
    EXPECT_NEAR(adam.param[static_cast<std::int64_t>(i)], theta[i], 2e-6) << i;
}

TEST_P(OptimizerAllLevels, SgdByHand) {
  // g = 2 * 0.5 + 0.1 * 1 = 1.1; m = 0.9 * 2 + 1.1 = 2.9; p = 1 - 0.1 * 2.9 = 0.71.
  Guarded param(2), grad(2), m(2);
  param[0] = 1.0f;
  grad[0] = 2.0f;
  m[0] = 2.0f;
  level().sgd({.param = param.data(),
               .grad = grad.data(),
               .m = m.data(),
               .lr = 0.1f,
               .momentum = 0.9f,
               .weight_decay = 0.1f,
               .grad_scale = 0.5f},
              {0, 2});
  EXPECT_NEAR(m[0], 2.9, 1e-6);
  EXPECT_NEAR(param[0], 0.71, 1e-6);
  EXPECT_EQ(param[1], 0.0f);
}

TEST_P(OptimizerAllLevels, SumSquaresByHandAndInDouble) {
  Guarded x(3);
  x[0] = 3.0f;
  x[1] = 4.0f;
  x[2] = 1e30f;
  double sum = 0.0;
  level().sum_squares({.x = x.data(), .count = 2, .sums = &sum}, {0, 1});
  EXPECT_EQ(sum, 25.0);
  level().sum_squares({.x = x.data(), .count = 3, .sums = &sum}, {0, 1});
  EXPECT_NEAR(sum, 1e60, 1e53);
}

// Chunks of 4096, the last one shorter: 4096 ones, as many twos, three threes.
TEST_P(OptimizerAllLevels, SumSquaresOfChunks) {
  Guarded x(2 * kNormChunk + 3, 3.0f);
  for (std::int64_t i = 0; i < 2 * kNormChunk; ++i)
    x[i] = i < kNormChunk ? 1.0f : 2.0f;
  double sums[4] = {-1.0, -1.0, -1.0, -1.0};
  level().sum_squares({.x = x.data(), .count = x.size(), .sums = sums}, {1, 3});
  EXPECT_EQ(sums[0], -1.0);
  EXPECT_EQ(sums[1], 4.0 * kNormChunk);
  EXPECT_EQ(sums[2], 27.0);
  EXPECT_EQ(sums[3], -1.0);
  level().sum_squares({.x = x.data(), .count = x.size(), .sums = sums}, {0, 1});
  EXPECT_EQ(sums[0], 1.0 * kNormChunk);
}

TEST_P(OptimizerAllLevels, AllFiniteSeesEveryPlace) {
  for (const std::int64_t count : {1, 15, 16, 17, 50}) {
    Guarded x = Guarded::random(count, 3);
    x[0] = std::numeric_limits<float>::max();
    EXPECT_TRUE(level().all_finite(x.data(), count));
    for (std::int64_t i = 0; i < count; ++i)
      for (const float bad : {kNan, kInf, -kInf}) {
        const float kept = x[i];
        x[i] = bad;
        EXPECT_FALSE(level().all_finite(x.data(), count)) << i << " of " << count;
        x[i] = kept;
      }
  }
  EXPECT_TRUE(level().all_finite(nullptr, 0));
}

class OptimizerVectorLevels : public VectorLevel {};
TROUPE_VECTOR_LEVELS(OptimizerVectorLevels);

TEST_P(OptimizerVectorLevels, SameBitsAsReference) {
  for (const std::int64_t count : {1, 16, 31, 1000}) {
    Adam expected(count), actual(count);
    expected.grad[count / 2] = actual.grad[count / 2] = 1e-25f;  // its square underflows
    for (int step = 1; step <= 3; ++step) {
      reference().adamw(expected.args(step), {0, count});
      level().adamw(actual.args(step), {0, count / 2});
      level().adamw(actual.args(step), {count / 2, count});
      reference().sgd(expected.sgd(), {0, count});
      level().sgd(actual.sgd(), {0, count / 2});
      level().sgd(actual.sgd(), {count / 2, count});
    }
    EXPECT_TRUE(same_bits(expected.param, actual.param));
    EXPECT_TRUE(same_bits(expected.m, actual.m));
    EXPECT_TRUE(same_bits(expected.v, actual.v));
    double sums[2] = {0.0, 1.0};
    reference().sum_squares({.x = expected.grad.data(), .count = count, .sums = &sums[0]}, {0, 1});
    level().sum_squares({.x = expected.grad.data(), .count = count, .sums = &sums[1]}, {0, 1});
    EXPECT_EQ(sums[0], sums[1]);
    EXPECT_EQ(reference().all_finite(expected.grad.data(), count),
              level().all_finite(expected.grad.data(), count));
  }
}

}  // namespace
}  // namespace troupe::kernels::test
