// Draws against exact probabilities (chi-square, computed in double), the definition of greedy, and
// the same bits at every kernel level.
#include "runtime/engine/sampler.hpp"

#include "runtime/core/rng.hpp"
#include "tests/unit/runtime/engine/logits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace troupe::engine {
namespace {

constexpr std::uint64_t kSeed = 17;

// Pearson's statistic of `draws` draws against `expected` probabilities, tokens that expect fewer
// than 8 draws pooled; in units of standard deviations above its mean.
double chi_square_sigmas(const std::vector<std::int64_t>& counts,
                         const std::vector<double>& expected,
                         std::int64_t draws) {
  double statistic = 0.0, pooled_expected = 0.0, pooled_count = 0.0;
  double cells = -1.0;
  const auto add = [&](double count, double mean) {
    statistic += (count - mean) * (count - mean) / mean;
    cells += 1.0;
  };
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double mean = expected[i] * static_cast<double>(draws);
    if (mean < 8.0) {
      pooled_expected += mean;
      pooled_count += static_cast<double>(counts[i]);
    } else {
      add(static_cast<double>(counts[i]), mean);
    }
  }
  if (pooled_expected >= 8.0) add(pooled_count, pooled_expected);
  return (statistic - cells) / std::sqrt(2.0 * cells);
}

// Draws many tokens from one row and checks them against `expected`.
void expect_distribution(const Logits& logits,
                         const SamplingParams& params,
                         const std::vector<std::int32_t>& masked,
                         const std::vector<double>& expected) {
  Sampler sampler(logits.vocab());
  const HeadRow row = logits.head(inv_temperature(params));
  std::vector<std::int64_t> counts(expected.size(), 0);
  constexpr std::int64_t kDraws = 60'000;
  for (std::int64_t i = 0; i < kDraws; ++i) {
    const double u = core::uniform(kSeed, kSamplingStream, static_cast<std::uint64_t>(i));
    const Draw draw = sampler.draw(row, params, u, {.masked = masked});
    ++counts[static_cast<std::size_t>(draw.token)];
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (expected[i] == 0.0) {
      EXPECT_EQ(counts[i], 0) << "token " << i;
    }
  }
  EXPECT_LT(std::abs(chi_square_sigmas(counts, expected, kDraws)), 4.0);
}

void keep_only(std::vector<double>& p, const std::vector<bool>& keep) {
  double sum = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (!keep[i]) p[i] = 0.0;
    sum += p[i];
  }
  for (double& value : p)
    value /= sum;
}

TEST(Sampler, DrawsFromTheSoftmaxAtItsTemperature) {
  for (const float temperature : {0.5f, 1.0f, 1.7f}) {
    const Logits logits = Logits::random(1300, 3, 2.0f);
    SamplingParams params;
    params.temperature = temperature;
    expect_distribution(logits, params, {}, softmax(logits, static_cast<double>(temperature)));
  }
}

TEST(Sampler, DrawsFromTheRenormalisedTopK) {
  const Logits logits = Logits::random(900, 4, 1.5f);
  SamplingParams params;
  params.top_k = 20;
  std::vector<double> p = softmax(logits, 1.0);
  std::vector<double> sorted = p;
  std::sort(sorted.rbegin(), sorted.rend());
  std::vector<bool> keep;
  for (const double value : p)
    keep.push_back(value >= sorted[19]);
  keep_only(p, keep);
  expect_distribution(logits, params, {}, p);
}

TEST(Sampler, NeverDrawsAMaskedToken) {
  const Logits logits = Logits::random(1100, 5, 2.0f);
  const std::vector<std::int32_t> masked = {0, 1, 511, 512, logits.argmax()};
  std::vector<std::int32_t> ascending = masked;
  std::sort(ascending.begin(), ascending.end());
  std::vector<double> p = softmax(logits, 1.0);
  std::vector<bool> keep(p.size(), true);
  for (const std::int32_t token : masked)
    keep[static_cast<std::size_t>(token)] = false;
  keep_only(p, keep);
  expect_distribution(logits, {}, ascending, p);
  SamplingParams greedy;
  greedy.temperature = 0.0f;
  Sampler sampler(logits.vocab());
  const Draw draw = sampler.draw(logits.head(1.0f), greedy, 0.5, {.masked = ascending});
  EXPECT_FALSE(std::binary_search(ascending.begin(), ascending.end(), draw.token));
}

TEST(Sampler, MaskOfAWholeVocabularyBlockLeavesTheOthers) {
  const Logits logits = Logits::random(1024, 6, 1.0f);
  std::vector<std::int32_t> masked;
  for (std::int32_t i = 0; i < 512; ++i)
    masked.push_back(i);
  Sampler sampler(logits.vocab());
  for (std::uint64_t i = 0; i < 100; ++i) {
    const double u = core::uniform(kSeed, 0, i);
    EXPECT_GE(sampler.draw(logits.head(1.0f), {}, u, {.masked = masked}).token, 512);
  }
}

TEST(Sampler, GreedyTakesTheLowestOfTies) {
  Logits logits = Logits::random(1500, 7, 1.0f);
  for (const std::size_t i : {700u, 900u, 1400u})
    logits.values()[i] = 9.0f;
  SamplingParams greedy;
  greedy.temperature = 0.0f;
  Sampler sampler(logits.vocab());
  EXPECT_EQ(sampler.draw(logits.head(1.0f), greedy, 0.9, {}).token, 700);
}

TEST(Sampler, LogprobIsTheFullVocabularysAtTheTemperature) {
  const Logits logits = Logits::random(2000, 8, 3.0f);
  Sampler sampler(logits.vocab());
  for (const float temperature : {0.7f, 1.0f, 2.0f}) {
    SamplingParams params;
    params.temperature = temperature;
    const HeadRow row = logits.head(inv_temperature(params));
    for (const std::int32_t k : {0, 5}) {
      params.top_k = k;
      const Draw draw = sampler.draw(row, params, 0.4, {});
      const float z = logits.values()[static_cast<std::size_t>(draw.token)];
      EXPECT_EQ(draw.logprob, z * (1.0f / temperature) - row.lse);
      const std::vector<double> p = softmax(logits, static_cast<double>(temperature));
      EXPECT_NEAR(draw.logprob, std::log(p[static_cast<std::size_t>(draw.token)]), 2e-5);
    }
  }
}

TEST(Sampler, TokensFollowTheCumulativeDistribution) {
  const Logits logits = Logits::random(5000, 10, 2.0f);
  const std::vector<double> p = softmax(logits, 1.0);
  Sampler sampler(logits.vocab());
  const HeadRow row = logits.head(1.0f);
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const double u = core::uniform(kSeed, 3, i);
    const std::int32_t token = sampler.draw(row, {}, u, {}).token;
    double before = 0.0;
    for (std::int32_t t = 0; t < token; ++t)
      before += p[static_cast<std::size_t>(t)];
    EXPECT_GT(u, before - 2e-6);
    EXPECT_LT(u, before + p[static_cast<std::size_t>(token)] + 2e-6);
  }
}

TEST(Sampler, EndsOfTheUnitIntervalGiveTokens) {
  const Logits logits = Logits::random(257, 11, 4.0f);
  Sampler sampler(logits.vocab());
  for (const double u : {0x1.0p-33, 1.0 - 0x1.0p-33}) {
    const std::int32_t token = sampler.draw(logits.head(1.0f), {}, u, {}).token;
    EXPECT_GE(token, 0);
    EXPECT_LT(token, 257);
  }
}

TEST(Sampler, SameBitsAtEveryKernelLevel) {
  SamplingParams variants[4];
  variants[1].temperature = 0.6f;
  variants[1].top_p = 0.9f;
  variants[2].top_k = 40;
  variants[2].min_p = 0.01f;
  variants[3].temperature = 0.0f;
  for (const kernels::Isa isa : {kernels::Isa::kAvx2, kernels::Isa::kAvx512}) {
    if (!kernels::isa_available(isa)) continue;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const Logits logits = Logits::random(3001, seed, 2.5f);
      Sampler reference(3001, kernels::ops_for(kernels::Isa::kReference));
      Sampler other(3001, kernels::ops_for(isa));
      for (const SamplingParams& params : variants) {
        const double u = core::uniform(kSeed, 4, seed);
        const HeadRow row = logits.head(inv_temperature(params));
        const Draw a = reference.draw(row, params, u, {});
        const Draw b = other.draw(row, params, u, {});
        EXPECT_EQ(a.token, b.token);
        EXPECT_EQ(std::memcmp(&a.logprob, &b.logprob, sizeof(float)), 0);
      }
    }
  }
}

}  // namespace
}  // namespace troupe::engine
