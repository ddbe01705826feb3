// The numbers of a micro-batch, in the order of its tokens.
#include "runtime/learn/update_context.hpp"

#include "runtime/learn/experience_check.hpp"

#include <gtest/gtest.h>

namespace troupe::learn {
namespace {

using Values = std::vector<double>;

// Two groups of two samples; every number says where it belongs: group, sample, position.
std::vector<TrainGroup> marked_groups() {
  std::vector<TrainGroup> groups(2);
  for (std::uint32_t g = 0; g < 2; ++g) {
    groups[g].ticket.slot = g;
    groups[g].prompt = {1, 2};
    for (std::uint32_t s = 0; s < 2; ++s) {
      TrainSample sample;
      for (std::uint32_t t = 0; t <= s; ++t) {
        sample.tokens.push_back(static_cast<std::int32_t>(3 + t));
        sample.behaviour.push_back(static_cast<float>(100 * g + 10 * s + t));
        sample.reference.push_back(-sample.behaviour.back());
        sample.versions.push_back(5);
      }
      groups[g].samples.push_back(sample);
    }
  }
  return groups;
}

}  // namespace

TEST(AnchorSource, FollowsAgeAndStepCount) {
  EXPECT_EQ(anchor_source(true, 1), AnchorSource::kBehaviour);
  EXPECT_EQ(anchor_source(true, 8), AnchorSource::kBehaviour);
  EXPECT_EQ(anchor_source(false, 1), AnchorSource::kCurrent);
  EXPECT_EQ(anchor_source(false, 2), AnchorSource::kScored);
}

TEST(TokenBatch, FollowsPartsSamplesAndPositions) {
  const auto groups = marked_groups();
  BatchSettings batch;
  batch.mini_batches = 2;
  UpdateContext update{.groups = groups,
                       .advantages = {{1, 2}, {3, 4}},
                       .plan = *plan_update(groups, batch),
                       .scored = {}};
  MicroBatch micro;
  micro.parts = {{1, 0, 2}, {0, 1, 2}};
  AlgoSettings algo;
  algo.kl_coef = 1;
  algo.reducer = Reducer::kSampleMean;
  update.anchor = AnchorSource::kBehaviour;
  TokenBatch tokens = token_batch(algo, update, micro);
  EXPECT_EQ(tokens.behaviour, (Values{100, 110, 111, 10, 11}));
  EXPECT_EQ(tokens.anchor, tokens.behaviour);
  EXPECT_EQ(tokens.reference, (Values{-100, -110, -111, -10, -11}));
  EXPECT_EQ(tokens.advantage, (Values{3, 4, 4, 2, 2}));
  // Two mini-batches, four samples: 2 / (4 T).
  EXPECT_EQ(tokens.weight, (Values{0.5, 0.25, 0.25, 0.25, 0.25}));

  update.anchor = AnchorSource::kCurrent;
  algo.kl_coef = 0;
  tokens = token_batch(algo, update, micro);
  EXPECT_TRUE(tokens.anchor.empty());
  EXPECT_TRUE(tokens.reference.empty());

  update.anchor = AnchorSource::kScored;
  update.scored.resize(2);
  scatter_scored(groups, micro, {1, 2, 3, 4, 5}, update.scored);
  EXPECT_EQ(update.scored[1][1], (std::vector<float>{2, 3}));
  EXPECT_EQ(token_batch(algo, update, micro).anchor, (Values{1, 2, 3, 4, 5}));
}

TEST(CheckExperience, MeasuresAgesInSteps) {
  auto groups = marked_groups();
  auto ages = check_experience(groups, 5, true);
  ASSERT_TRUE(ages.has_value());
  EXPECT_TRUE(ages->on_policy());
  groups[0].samples[1].versions = {2, 4};
  ages = check_experience(groups, 5, true);
  ASSERT_TRUE(ages.has_value());
  EXPECT_EQ(ages->max, 3u);
  EXPECT_NEAR(ages->mean, 4.0 / 6, 1e-15);
  EXPECT_FALSE(ages->on_policy());
}

}  // namespace troupe::learn
