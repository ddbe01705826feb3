// Vocabulary sums and gradients: against softmax in double, edges, and same bits on every level.
#include "tests/unit/kernels/support.hpp"

#include <algorithm>

namespace troupe::kernels::test {
namespace {

class VocabAllLevels : public VectorLevel {};
TROUPE_ALL_LEVELS(VocabAllLevels);

TEST_P(VocabAllLevels, StatsByHand) {
  Guarded z(3);
  z[0] = 2.0f;
  z[1] = 4.0f;
  z[2] = 4.0f;
  float max = 0.0f, sum = 0.0f;
  level().vocab_stats(z.data(), 3, 0.5f, &max, &sum);
  EXPECT_EQ(max, 2.0f);
  EXPECT_NEAR(sum, 2.0 + std::exp(-1.0), 1e-6);
}

TEST_P(VocabAllLevels, BlockOfMinusInfinitySumsToZero) {
  Guarded z(20, -kInf);
  float max = 0.0f, sum = 1.0f;
  level().vocab_stats(z.data(), 20, 1.0f, &max, &sum);
  EXPECT_EQ(max, -kInf);
  EXPECT_EQ(sum, 0.0f);
  z[7] = kNan;
  level().vocab_stats(z.data(), 20, 1.0f, &max, &sum);
  EXPECT_TRUE(std::isnan(sum));
}

struct Softmax {
  std::vector<double> s, p;
  double lse = 0.0, entropy = 0.0;
  Softmax(const Guarded& z, double inv_temperature) {
    double total = 0.0;
    for (std::int64_t i = 0; i < z.size(); ++i) {
      s.push_back(static_cast<double>(z[i]) * inv_temperature);
      total += std::exp(s.back());
    }
    lse = std::log(total);
    for (const double x : s) {
      p.push_back(std::exp(x - lse));
      if (p.back() > 0.0) entropy -= p.back() * (x - lse);
    }
  }
};

TEST_P(VocabAllLevels, WeightedSumGivesTheEntropy) {
  Guarded z = Guarded::random(kVocabBlock, 4, 3.0f);
  z[100] = -kInf;
  const Softmax exact(z, 0.7);
  const auto lse = static_cast<float>(exact.lse);
  const double mean = level().vocab_weighted(z.data(), kVocabBlock, 0.7f, lse);
  EXPECT_NEAR(exact.lse - mean, exact.entropy, 2e-5);
}

// d/dz of (g_logprob * log p[target] + g_entropy * H), by central differences in double.
TEST_P(VocabAllLevels, GradientCloseToDifferences) {
  const std::int64_t count = 37, target = 20;
  const Guarded z = Guarded::random(count, 4, 2.0f);
  const double inv_temperature = 0.8, g_logprob = 1.3, g_entropy = -0.4;
  const auto loss = [&](std::int64_t at, double step) {
    Softmax soft(z, inv_temperature);
    std::vector<double> s = soft.s;
    s[static_cast<std::size_t>(at)] += step * inv_temperature;
    double total = 0.0, entropy = 0.0;
    for (const double x : s)
      total += std::exp(x);
    for (const double x : s)
      entropy -= std::exp(x) / total * (x - std::log(total));
    return g_logprob * (s[target] - std::log(total)) + g_entropy * entropy;
  };
  const Softmax exact(z, inv_temperature);
  Guarded grad(z);
  for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, 11}, {11, count}})
    level().vocab_grad(grad.data(), begin, end, 0.8f, static_cast<float>(exact.lse), target, 1.3f,
                       -0.4f, static_cast<float>(exact.entropy));
  for (std::int64_t i = 0; i < count; ++i)
    EXPECT_NEAR(grad[i], (loss(i, 1e-5) - loss(i, -1e-5)) / 2e-5, 2e-6) << i;
}

class VocabVectorLevels : public VectorLevel {};
TROUPE_VECTOR_LEVELS(VocabVectorLevels);

TEST_P(VocabVectorLevels, SameBitsAsReference) {
  for (const std::int64_t count : {1, 3, 15, 16, 17, 257, 512, 1000})
    for (const float special : {0.5f, kInf, -kInf, kNan, 1e30f, 1e-40f}) {
      Guarded z = Guarded::random(count, 6, 4.0f);
      z[count / 2] = special;
      float max[2], sum[2];
      reference().vocab_stats(z.data(), count, 0.9f, &max[0], &sum[0]);
      level().vocab_stats(z.data(), count, 0.9f, &max[1], &sum[1]);
      EXPECT_TRUE(same_bits(max[0], max[1])) << count << " " << special;
      EXPECT_TRUE(same_bits(sum[0], sum[1])) << count << " " << special;
      EXPECT_TRUE(same_bits(reference().vocab_weighted(z.data(), count, 0.9f, 5.0f),
                            level().vocab_weighted(z.data(), count, 0.9f, 5.0f)))
          << count << " " << special;
      for (const std::int64_t target : {std::int64_t{-1}, std::int64_t{0}, count / 2, count - 1}) {
        Guarded expected(z), actual(z);
        reference().vocab_grad(expected.data(), 0, count, 0.9f, 5.0f, target, 1.5f, 0.3f, 2.0f);
        level().vocab_grad(actual.data(), 0, count / 3, 0.9f, 5.0f, target, 1.5f, 0.3f, 2.0f);
        level().vocab_grad(actual.data(), count / 3, count, 0.9f, 5.0f, target, 1.5f, 0.3f, 2.0f);
        EXPECT_TRUE(same_bits(expected, actual)) << count << " " << special;
      }
    }
}

}  // namespace
}  // namespace troupe::kernels::test
