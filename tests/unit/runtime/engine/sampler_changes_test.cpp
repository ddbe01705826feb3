// Draws under penalties and biases against exact probabilities (chi-square, in double), and what is
// told beside a draw against double arithmetic and a full sort.
#include "runtime/core/rng.hpp"
#include "runtime/engine/sampler.hpp"
#include "tests/unit/runtime/engine/logits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace troupe::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

SamplingParams penalised() {
  SamplingParams params;
  params.temperature = 0.8f;
  params.repetition_penalty = 1.5f;
  params.presence_penalty = 0.6f;
  params.frequency_penalty = 0.3f;
  params.logit_bias = {{7, 2.0f}, {650, -3.0f}};
  return params;
}

const std::vector<std::int32_t> kPrompt{3, 7, 40, 512, 699};
const std::vector<TokenCount> kResponse{{3, 4}, {8, 1}, {513, 2}};

// Scaled scores as the definition has them, in double.
std::vector<double> changed_scores(const Logits& logits, const SamplingParams& params) {
  std::vector<double> z(logits.values().begin(), logits.values().end());
  for (const LogitBias& entry : params.logit_bias)
    z[static_cast<std::size_t>(entry.token)] += static_cast<double>(entry.bias);
  std::vector<std::int32_t> seen = kPrompt;
  for (const TokenCount& entry : kResponse)
    seen.push_back(entry.token);
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  const auto r = static_cast<double>(params.repetition_penalty);
  for (const std::int32_t token : seen) {
    double& value = z[static_cast<std::size_t>(token)];
    value = value > 0.0 ? value / r : value * r;
  }
  for (const TokenCount& entry : kResponse)
    z[static_cast<std::size_t>(entry.token)] -=
        static_cast<double>(params.frequency_penalty) * entry.count +
        static_cast<double>(params.presence_penalty);
  for (double& value : z)
    value /= static_cast<double>(params.temperature);
  return z;
}

TEST(SamplerChanges, DrawsFromThePenalisedDistribution) {
  Logits logits = Logits::random(700, 3, 0.5f);
  for (const std::size_t token : {40u, 512u, 699u})  // both signs among the tokens seen
    logits.values()[token] = -1.2f;
  const SamplingParams params = penalised();
  const std::vector<double> p = softmax(changed_scores(logits, params));
  Sampler sampler(logits.vocab());
  const HeadRow row = logits.head(inv_temperature(params));
  constexpr std::int64_t kDraws = 80'000;
  std::vector<std::int64_t> counts(p.size());
  for (std::int64_t i = 0; i < kDraws; ++i) {
    const double u = core::uniform(23, kSamplingStream, static_cast<std::uint64_t>(i));
    ++counts[static_cast<std::size_t>(
        sampler.draw(row, params, u, {{}, kPrompt, kResponse}).token)];
  }
  // Standard deviations above the mean of the statistic, over all tokens and over those changed.
  const std::vector<double> plain = softmax(logits, static_cast<double>(params.temperature));
  const auto sigmas = [&](bool changed) {
    double statistic = 0.0, cells = 0.0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double mean = p[i] * static_cast<double>(kDraws);
      if (mean < 8.0 || (changed && std::abs(p[i] / plain[i] - 1.0) < 0.2)) continue;
      const double off = static_cast<double>(counts[i]) - mean;
      statistic += off * off / mean;
      cells += 1.0;
    }
    EXPECT_GE(cells, changed ? 7.0 : 600.0);
    return (statistic - cells) / std::sqrt(2.0 * cells);
  };
  EXPECT_LT(std::abs(sigmas(false)), 4.0);
  EXPECT_LT(sigmas(true), 4.0);
}

TEST(SamplerChanges, GreedyTakesTheLargestChangedScore) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Logits logits = Logits::random(700, seed, 0.5f);
    SamplingParams params = penalised();
    params.temperature = 0.0f;
    SamplingParams at_one = params;
    at_one.temperature = 1.0f;
    const std::vector<double> scores = changed_scores(logits, at_one);
    Sampler sampler(logits.vocab());
    const Draw draw = sampler.draw(logits.head(1.0f), params, 0.5, {{}, kPrompt, kResponse});
    EXPECT_EQ(draw.token, std::max_element(scores.begin(), scores.end()) - scores.begin());
  }
}

TEST(SamplerChanges, KeptSetIsThatOfTheChangedScores) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Logits logits = Logits::random(700, seed, 2.0f);
    SamplingParams params = penalised();
    params.top_k = 12;
    const std::vector<double> scores = changed_scores(logits, params);
    std::vector<std::int32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
    });
    order.resize(12);
    Sampler sampler(logits.vocab());
    const HeadRow row = logits.head(inv_temperature(params));
    for (const double u : {0.01, 0.3, 0.99}) {
      const Draw draw = sampler.draw(row, params, u, {{}, kPrompt, kResponse});
      EXPECT_TRUE(std::find(order.begin(), order.end(), draw.token) != order.end()) << seed;
    }
  }
}

TEST(SamplerChanges, LogprobStaysTheModelsOwn) {
  const Logits logits = Logits::random(2000, 5, 2.0f);
  const SamplingParams params = penalised();
  const HeadRow row = logits.head(inv_temperature(params));
  Sampler sampler(logits.vocab());
  const Draw draw = sampler.draw(row, params, 0.4, {{}, kPrompt, kResponse});
  const float z = logits.values()[static_cast<std::size_t>(draw.token)];
  EXPECT_EQ(draw.logprob, z * row.inv_temperature - row.lse);
}

TEST(SamplerChanges, ABiasForbidsOrForcesAToken) {
  const Logits logits = Logits::random(600, 6, 1.0f);
  Sampler sampler(logits.vocab());
  SamplingParams params;
  params.logit_bias = {{123, 1e6f}};
  EXPECT_EQ(sampler.draw(logits.head(1.0f), params, 0.99, {}).token, 123);
  params.logit_bias = {{logits.argmax(), -1e6f}};
  for (std::uint64_t i = 0; i < 300; ++i)
    EXPECT_NE(sampler.draw(logits.head(1.0f), params, core::uniform(1, 1, i), {}).token,
              logits.argmax());
}

TEST(SamplerReports, EntropyAndRawLogprobAreThoseOfDoubleArithmetic) {
  for (const float temperature : {0.0f, 0.6f, 1.0f, 1.9f}) {
    const Logits logits = Logits::random(1700, 8, 2.0f);
    SamplingParams params;
    params.temperature = temperature;
    params.entropies = params.raw_logprobs = true;
    params.top_k = 3;
    const double t = temperature > 0.0f ? static_cast<double>(temperature) : 1.0;
    const std::vector<double> p = softmax(logits, t), raw = softmax(logits, 1.0);
    double entropy = 0.0;
    for (const double value : p)
      entropy -= value * std::log(value);
    Sampler sampler(logits.vocab());
    const Draw draw = sampler.draw(logits.head(inv_temperature(params)), params, 0.5, {});
    EXPECT_NEAR(draw.entropy, entropy, 2e-5);
    EXPECT_NEAR(draw.raw_logprob, std::log(raw[static_cast<std::size_t>(draw.token)]), 2e-5);
  }
}

TEST(SamplerReports, MostLikelyTokensEqualAFullSort) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    core::Rng rng(seed, 9);
    const auto vocab = static_cast<std::int64_t>(1 + rng.next_below(3000));
    Logits logits = Logits::random(vocab, seed, 2.0f);
    if (seed % 2 == 0)  // many ties
      for (float& z : logits.values())
        z = std::round(z);
    if (seed % 5 == 0) logits.values()[0] = -kInfinity;
    SamplingParams params;
    params.temperature = seed % 3 == 0 ? 1.0f : 0.7f;
    std::vector<std::int32_t> order(static_cast<std::size_t>(vocab));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return logits.values()[static_cast<std::size_t>(a)] >
             logits.values()[static_cast<std::size_t>(b)];
    });
    const HeadRow row = logits.head(inv_temperature(params));
    const float lse = Logits(logits).head(1.0f).lse;
    std::vector<TokenLogprob> top(std::min<std::size_t>(1 + rng.next_below(40), order.size()));
    Sampler sampler(vocab);
    sampler.score(row, 0, top);
    for (std::size_t i = 0; i < top.size(); ++i) {
      EXPECT_EQ(top[i].token, order[i]) << seed;
      EXPECT_EQ(top[i].logprob, logits.values()[static_cast<std::size_t>(order[i])] - lse);
    }
  }
}

TEST(SamplerReports, AScoredTokenHasItsLogprobAtTemperatureOne) {
  const Logits logits = Logits::random(1500, 12, 3.0f);
  const std::vector<double> p = softmax(logits, 1.0);
  Sampler sampler(logits.vocab());
  for (const float scale : {1.0f, 2.0f}) {
    const HeadRow row = logits.head(scale);
    for (const std::int32_t token : {0, 511, 512, 1499}) {
      const Draw draw = sampler.score(row, token);
      EXPECT_EQ(draw.token, token);
      EXPECT_NEAR(draw.logprob, std::log(p[static_cast<std::size_t>(token)]), 2e-5);
      EXPECT_EQ(draw.logprob, draw.raw_logprob);
    }
  }
}

// Tokens of probability zero are never drawn, whatever else is asked.
TEST(SamplerReports, RowsWithMinusInfinities) {
  Logits logits = Logits::random(1100, 13, 2.0f);
  for (std::size_t i = 0; i < 1100; i += i < 512 ? 1 : 3)  // a whole block and a third of the rest
    logits.values()[i] = -kInfinity;
  SamplingParams params = penalised();
  params.entropies = true;
  params.top_p = 0.999f;
  const HeadRow row = logits.head(inv_temperature(params));
  Sampler sampler(logits.vocab());
  for (std::uint64_t i = 0; i < 500; ++i) {
    const Draw draw = sampler.draw(row, params, core::uniform(2, 1, i), {{}, kPrompt, kResponse});
    EXPECT_GT(logits.values()[static_cast<std::size_t>(draw.token)], -kInfinity);
    EXPECT_TRUE(std::isfinite(draw.logprob));
    EXPECT_TRUE(std::isfinite(draw.entropy));
  }
}

TEST(SamplerReports, SameBitsAtEveryKernelLevel) {
  for (const kernels::Isa isa : {kernels::Isa::kAvx2, kernels::Isa::kAvx512}) {
    if (!kernels::isa_available(isa)) continue;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Logits logits = Logits::random(3001, seed, 2.5f);
      Sampler reference(3001, kernels::ops_for(kernels::Isa::kReference));
      Sampler other(3001, kernels::ops_for(isa));
      SamplingParams params = penalised();
      params.entropies = params.raw_logprobs = true;
      params.top_k = 100;
      const HeadRow row = logits.head(inv_temperature(params));
      const double u = core::uniform(4, 4, seed);
      const Draw a = reference.draw(row, params, u, {{}, kPrompt, kResponse});
      const Draw b = other.draw(row, params, u, {{}, kPrompt, kResponse});
      EXPECT_EQ(a.token, b.token);
      EXPECT_EQ(std::memcmp(&a.entropy, &b.entropy, sizeof(float)), 0);
      EXPECT_EQ(std::memcmp(&a.raw_logprob, &b.raw_logprob, sizeof(float)), 0);
    }
  }
}

}  // namespace
}  // namespace troupe::engine
