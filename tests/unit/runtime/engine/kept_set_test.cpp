// The kept set against a full sort: rank by score (ties by lower id), cut by k, then p, then min-p.
#include "runtime/engine/kept_set.hpp"

#include "tests/unit/runtime/engine/logits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace troupe::engine {
namespace {

// Ids of the kept tokens by sorting everything; the weights are the kernels', the sums in double.
// `near` is set when a cut falls so close to a limit that the order of a sum may decide it.
std::vector<std::int32_t> sort_oracle(const Logits& logits,
                                      float inv_temperature,
                                      const SamplingParams& params,
                                      bool& near) {
  std::vector<Candidate> all;
  float max = -INFINITY;
  for (std::size_t i = 0; i < logits.values().size(); ++i) {
    all.push_back({logits.values()[i] * inv_temperature, 0.0f, static_cast<std::int32_t>(i)});
    max = std::max(max, all.back().score);
  }
  for (Candidate& token : all) {
    const float below = token.score - max;
    kernels::ops().exp(&below, &token.weight, 1);
  }
  std::sort(all.begin(), all.end(), ranks_before);
  if (params.top_k > 0 && static_cast<std::size_t>(params.top_k) < all.size()) {
    all.resize(static_cast<std::size_t>(params.top_k));
  }
  double mass = 0.0, before = 0.0;
  for (const Candidate& token : all)
    mass += static_cast<double>(token.weight);
  std::vector<std::int32_t> kept;
  near = false;
  for (const Candidate& token : all) {
    const double limit = static_cast<double>(params.top_p) * mass;
    near = near || (params.top_p < 1.0f && std::abs(before - limit) < 1e-6 * mass);
    if (params.top_p < 1.0f && before >= limit) break;
    before += static_cast<double>(token.weight);
    if (token.weight >= params.min_p) kept.push_back(token.id);
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

std::vector<std::int32_t> find(const Logits& logits,
                               float inv_temperature,
                               const SamplingParams& params) {
  VocabRow row(logits.vocab(), kernels::ops());
  row.load(logits.head(inv_temperature), {});
  KeptSet kept(logits.vocab());
  kept.find(row, params);
  std::vector<std::int32_t> ids;
  for (const Candidate& token : kept.tokens())
    ids.push_back(token.id);
  return ids;
}

SamplingParams cut(std::int32_t k, float p, float min_p) {
  SamplingParams params;
  params.top_k = k;
  params.top_p = p;
  params.min_p = min_p;
  return params;
}

TEST(KeptSet, EqualsFullSortOnRandomRows) {
  int compared = 0, skipped = 0;
  for (std::uint64_t seed = 0; seed < 700; ++seed) {
    core::Rng rng(seed, 5);
    const std::int64_t vocab =
        2 + static_cast<std::int64_t>(rng.next_below(seed % 10 ? 3000 : 50000));
    const auto deviation = static_cast<float>(0.1 + 5.0 * rng.next_uniform());
    Logits logits = Logits::random(vocab, seed, deviation);
    if (rng.next_below(3) == 0) {  // many ties
      for (float& z : logits.values())
        z = std::round(z * 2.0f) / 2.0f;
    }
    const float inv_temperature =
        rng.next_below(2) ? 1.0f : static_cast<float>(0.3 + rng.next_uniform());
    const bool k_on = rng.next_below(2) == 0, p_on = rng.next_below(2) == 0;
    const SamplingParams params =
        cut(k_on ? static_cast<std::int32_t>(1 + rng.next_below(200)) : 0,
            p_on ? static_cast<float>(0.02 + 0.97 * rng.next_uniform()) : 1.0f,
            rng.next_below(3) ? 0.0f : static_cast<float>(0.3 * rng.next_uniform()));
    bool near = false;
    const std::vector<std::int32_t> expected = sort_oracle(logits, inv_temperature, params, near);
    if (near) {
      ++skipped;
      continue;
    }
    ++compared;
    ASSERT_EQ(find(logits, inv_temperature, params), expected)
        << "seed " << seed << " k " << params.top_k << " p " << params.top_p << " min_p "
        << params.min_p;
  }
  EXPECT_GT(compared, 600);
  EXPECT_LT(skipped, 70);
}

TEST(KeptSet, TopKBreaksTiesByLowerId) {
  Logits logits = Logits::random(600, 1, 0.1f);
  for (const std::size_t i : {100u, 200u, 300u, 550u})
    logits.values()[i] = 5.0f;
  EXPECT_EQ(find(logits, 1.0f, cut(2, 1.0f, 0.0f)), (std::vector<std::int32_t>{100, 200}));
}

TEST(KeptSet, TopPKeepsATokenWhileTheMassBeforeItIsBelowP) {
  Logits logits = Logits::random(10, 1, 0.0f);  // ten equal tokens
  EXPECT_EQ(find(logits, 1.0f, cut(0, 0.5f, 0.0f)).size(), 5u);
  EXPECT_EQ(find(logits, 1.0f, cut(0, 0.51f, 0.0f)).size(), 6u);
  EXPECT_EQ(find(logits, 1.0f, cut(0, 0.01f, 0.0f)).size(), 1u);
}

TEST(KeptSet, TopPCountsTheMassThatTopKLeft) {
  Logits logits = Logits::random(1000, 1, 0.0f);
  EXPECT_EQ(find(logits, 1.0f, cut(10, 0.5f, 0.0f)).size(), 5u);
}

TEST(KeptSet, MinPIsRelativeToTheLargest) {
  Logits logits = Logits::random(50, 1, 0.0f);
  for (float& z : logits.values())
    z = -5.0f;
  logits.values()[7] = 0.0f;
  logits.values()[9] = -0.5f;
  logits.values()[30] = -2.0f;
  EXPECT_EQ(find(logits, 1.0f, cut(0, 1.0f, 0.2f)), (std::vector<std::int32_t>{7, 9}));
  EXPECT_EQ(find(logits, 1.0f, cut(0, 1.0f, 1.0f)), (std::vector<std::int32_t>{7}));
}

TEST(KeptSet, TurnedOffParametersTruncateNothing) {
  EXPECT_FALSE(KeptSet::truncates(cut(0, 1.0f, 0.0f), 100));
  EXPECT_FALSE(KeptSet::truncates(cut(100, 1.0f, 0.0f), 100));
  EXPECT_TRUE(KeptSet::truncates(cut(99, 1.0f, 0.0f), 100));
  EXPECT_TRUE(KeptSet::truncates(cut(0, 0.99f, 0.0f), 100));
  EXPECT_TRUE(KeptSet::truncates(cut(0, 1.0f, 0.01f), 100));
}

}  // namespace
}  // namespace troupe::engine
