// The numbers of a micro-batch, in the order of its tokens.
#include "runtime/learn/rl/update_context.hpp"

#include "runtime/learn/rl/experience_check.hpp"

#include <gtest/gtest.h>

namespace troupe::learn {
namespace {

using Values = std::vector<double>;

// Two groups of two samples; every number says where it belongs: group, sample, position.
std::vector<experience::Group> marked_groups() {
  std::vector<experience::Group> groups(2);
  for (std::uint32_t g = 0; g < 2; ++g) {
    groups[g].ticket.slot = g;
    groups[g].prompt = {1, 2};
    for (std::uint32_t s = 0; s < 2; ++s) {
      experience::Trajectory sample;
      for (std::uint32_t t = 0; t <= s; ++t) {
        sample.tokens.push_back(static_cast<std::int32_t>(3 + t));
        sample.behaviour.push_back(static_cast<float>(100 * g + 10 * s + t));
        sample.reference.push_back(-sample.behaviour.back());
        sample.versions.add(5);
      }
      groups[g].samples.push_back(sample);
    }
  }
  return groups;
}

}  // namespace

TEST(AnchorSource, FollowsAgeAndStepCount) {
  const auto source = [](bool on_policy, std::int64_t steps, bool needed = false,
                         Chosen<Objective> kind = "decoupled") {
    return anchor_source(kind, on_policy, steps, needed);
  };
  EXPECT_EQ(source(true, 1), AnchorSource::kBehaviour);
  EXPECT_EQ(source(true, 8), AnchorSource::kBehaviour);
  EXPECT_EQ(source(false, 1), AnchorSource::kCurrent);
  EXPECT_EQ(source(false, 1, true), AnchorSource::kScored);
  EXPECT_EQ(source(false, 2), AnchorSource::kScored);
  EXPECT_EQ(source(false, 2, true, "a3po"), AnchorSource::kInterpolated);
  EXPECT_EQ(source(false, 2, true, "bypass"), AnchorSource::kBehaviour);
}

TEST(AnchorSource, KlInTheRewardVtraceAndM2poReadTheStartBeforeTheFirstStep) {
  AlgoSettings algo;
  EXPECT_FALSE(start_needed(algo));
  algo.kl.init_coef = 0.1;
  EXPECT_FALSE(start_needed(algo));
  algo.kl.use_loss = false;
  EXPECT_TRUE(start_needed(algo));
  algo = {};
  algo.advantage.estimator = "vtrace";
  EXPECT_TRUE(start_needed(algo));
  algo = {};
  algo.correction.type = "m2po";
  EXPECT_TRUE(start_needed(algo));
}

TEST(AnchorSource, AnUpdateScoresWhenSomethingReadsTheStartAndNoSampleKnowsIt) {
  AlgoSettings algo;
  EXPECT_FALSE(scores_start(algo, true, 4));
  EXPECT_FALSE(scores_start(algo, false, 1));
  EXPECT_TRUE(scores_start(algo, false, 2));
  algo.objective = "bypass";
  EXPECT_FALSE(scores_start(algo, false, 2));
  algo.advantage.estimator = "vtrace";
  EXPECT_TRUE(scores_start(algo, false, 1));
  EXPECT_FALSE(scores_start(algo, true, 1));
}

TEST(TokenBatch, FollowsPartsSamplesAndPositions) {
  const auto groups = marked_groups();
  BatchSettings batch;
  batch.mini_batches = 2;
  UpdateContext update{.groups = groups,
                       .advantages = {{{1}, {2, 2.5}}, {{3}, {4, 4.5}}},
                       .plan = *plan_update(groups, batch),
                       .scored = {},
                       .keep = {}};
  MicroBatch micro;
  micro.parts = {{1, 0, 2}, {0, 1, 2}};
  AlgoSettings algo;
  algo.kl.init_coef = 1;
  algo.reducer = "sample_mean";
  update.anchor = AnchorSource::kBehaviour;
  TokenBatch tokens = token_batch(algo, update, micro, 5);
  EXPECT_EQ(tokens.behaviour, (Values{100, 110, 111, 10, 11}));
  EXPECT_EQ(tokens.anchor, tokens.behaviour);
  EXPECT_EQ(tokens.reference, (Values{-100, -110, -111, -10, -11}));
  EXPECT_EQ(tokens.advantage, (Values{3, 4, 4.5, 2, 2.5}));
  EXPECT_EQ(tokens.sample_ends, (std::vector<std::size_t>{1, 3, 5}));
  // Two mini-batches, four samples: 2 / (4 T).
  EXPECT_EQ(tokens.weight, (Values{0.5, 0.25, 0.25, 0.25, 0.25}));

  update.anchor = AnchorSource::kCurrent;
  algo.kl.init_coef = 0;
  tokens = token_batch(algo, update, micro, 5);
  EXPECT_TRUE(tokens.anchor.empty());
  EXPECT_TRUE(tokens.reference.empty());

  update.anchor = AnchorSource::kScored;
  update.scored.resize(2);
  scatter_scored(groups, micro, {1, 2, 3, 4, 5}, update.scored);
  EXPECT_EQ(update.scored[1][1], (std::vector<float>{2, 3}));
  EXPECT_EQ(token_batch(algo, update, micro, 5).anchor, (Values{1, 2, 3, 4, 5}));
}

TEST(TokenBatch, InterpolatesByStepsSinceTheTokenWasMade) {
  auto groups = marked_groups();
  groups[1].samples[1].versions = {1, 5};
  UpdateContext update{.groups = groups,
                       .advantages = {{{1}, {2, 2}}, {{3}, {4, 4}}},
                       .plan = *plan_update(groups, {}),
                       .scored = {},
                       .keep = {}};
  update.anchor = AnchorSource::kInterpolated;
  update.start = 5;
  MicroBatch micro;
  micro.parts = {{1, 1, 2}};
  const AlgoSettings algo;
  // (v_p - v_mu) / (v_now - v_mu): 1 at the first step, 0 for a token of the start itself.
  EXPECT_EQ(token_batch(algo, update, micro, 5).anchor_share, (Values{1, 0}));
  // Three steps on: 4 / 7 and 0 / 3.
  const Values later = token_batch(algo, update, micro, 8).anchor_share;
  EXPECT_DOUBLE_EQ(later[0], 4.0 / 7);
  EXPECT_EQ(later[1], 0.0);
}

TEST(UpdateMask, CountsTheWholeUpdate) {
  auto groups = marked_groups();
  TokenTable<float> scored(2);
  // log rho: 0.1 | 0, 1 || 0.2 | 0.5, 0. Squares sorted: 0 0 .01 .04 .25 1; the mean of the first
  // five is 0.06, of all 0.2167.
  const float log_rho[] = {0.1f, 0.0f, 1.0f, 0.2f, 0.5f, 0.0f};
  std::size_t next = 0;
  for (std::size_t g = 0; g < 2; ++g) {
    for (auto& sample : groups[g].samples) {
      std::vector<float> row;
      for (float& l_mu : sample.behaviour) {
        l_mu = -1;
        row.push_back(-1 + log_rho[next++]);
      }
      scored[g].push_back(row);
    }
  }
  const auto mask = update_mask(groups, scored, 0.1);
  EXPECT_EQ(mask[0][1], (Values{1, 0}));
  EXPECT_EQ(mask[1][1], (Values{1, 1}));
  EXPECT_EQ(update_mask(groups, scored, 0.05)[1][1], (Values{0, 1}));
  EXPECT_EQ(update_mask(groups, {}, 0.0)[0][1], (Values{1, 1}));  // on policy
}

TEST(CheckExperience, MeasuresAgesInSteps) {
  auto groups = marked_groups();
  EXPECT_FALSE(check_experience(groups, 5, {.reference = true}))
      << "without scores there is nothing to learn";
  for (auto& group : groups) {
    for (auto& sample : group.samples)
      sample.score = 1;
  }
  auto ages = check_experience(groups, 5, {.reference = true});
  ASSERT_TRUE(ages.has_value());
  EXPECT_TRUE(ages->on_policy());
  groups[0].samples[1].versions = {2, 4};
  ages = check_experience(groups, 5, {.reference = true});
  ASSERT_TRUE(ages.has_value());
  EXPECT_EQ(ages->max, 3u);
  EXPECT_NEAR(ages->mean, 4.0 / 6, 1e-15);
  EXPECT_FALSE(ages->on_policy());
}

}  // namespace troupe::learn
