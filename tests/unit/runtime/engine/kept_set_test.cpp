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

struct Found {
  std::vector<std::int32_t> ids;
  std::uint64_t mass = 0;
  bool operator==(const Found&) const = default;
};

// By sorting everything, as kernels::Truncation defines it.
Found sort_oracle(const Logits& logits, float inv_temperature, const SamplingParams& params) {
  VocabRow row(logits.vocab(), kernels::ops());
  row.load(logits.head(inv_temperature), {});
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < logits.values().size(); ++i) {
    all.push_back({logits.values()[i] * inv_temperature, 0.0f, static_cast<std::int32_t>(i)});
    const float below = all.back().score - row.max();
    kernels::ops().exp(&below, &all.back().weight, 1);
  }
  std::sort(all.begin(), all.end(), ranks_before);
  const bool by_k = params.top_k > 0 && static_cast<std::size_t>(params.top_k) < all.size();
  if (by_k) all.resize(static_cast<std::size_t>(params.top_k));
  std::uint64_t mass = 0, before = 0;
  for (const Candidate& token : all)
    mass += token.mass();
  const double limit = static_cast<double>(params.top_p) *
                       (by_k ? static_cast<double>(mass) : row.mass() * kernels::kMassUnits);
  Found kept;
  for (const Candidate& token : all) {
    if (params.top_p < 1.0f && static_cast<double>(before) >= limit) break;
    before += token.mass();
    if (token.weight < params.min_p) continue;
    kept.ids.push_back(token.id);
    kept.mass += token.mass();
  }
  std::sort(kept.ids.begin(), kept.ids.end());
  return kept;
}

Found find_both(const Logits& logits, float inv_temperature, const SamplingParams& params) {
  VocabRow row(logits.vocab(), kernels::ops());
  row.load(logits.head(inv_temperature), {});
  KeptSet kept(logits.vocab());
  kept.find(row, params);
  Found found;
  for (const Candidate& token : kept.tokens())
    found.ids.push_back(token.id);
  found.mass = kept.mass();
  return found;
}

std::vector<std::int32_t> find(const Logits& logits,
                               float inv_temperature,
                               const SamplingParams& params) {
  return find_both(logits, inv_temperature, params).ids;
}

SamplingParams cut(std::int32_t k, float p, float min_p) {
  SamplingParams params;
  params.top_k = k;
  params.top_p = p;
  params.min_p = min_p;
  return params;
}

TEST(KeptSet, EqualsFullSortOnRandomRows) {
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
    ASSERT_EQ(find_both(logits, inv_temperature, params),
              sort_oracle(logits, inv_temperature, params))
        << "seed " << seed << " k " << params.top_k << " p " << params.top_p << " min_p "
        << params.min_p;
  }
}

// One token far above thousands that share the rest of the mass: the cut lies deeper than the
// blocks that the histogram counts.
TEST(KeptSet, EqualsFullSortWhereTheCutIsDeep) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Logits logits = Logits::random(40'000, seed, 0.2f);
    for (std::size_t i = 0; i < logits.values().size(); i += 1024)
      logits.values()[i] += 1.0f;  // every second block has a token above the others
    logits.values()[777] = 10.5f;
    for (const float p : {0.6f, 0.8f, 0.9f, 0.99f}) {
      const SamplingParams params = cut(0, p, 0.0f);
      ASSERT_EQ(find_both(logits, 1.0f, params), sort_oracle(logits, 1.0f, params))
          << "seed " << seed << " p " << p;
    }
  }
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
