// The chain from scores to advantages: its order, its terms and its bits.
#include "runtime/learn/advantage/update_advantages.hpp"

#include "runtime/learn/advantage/advantage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace troupe::learn {
namespace {

using Values = std::vector<double>;
using Rows = std::vector<Values>;

experience::Group group_of(std::uint32_t slot,
                           const Values& scores,
                           const std::vector<int>& lengths) {
  experience::Group group;
  group.ticket.slot = slot;
  group.prompt = {1};
  for (std::size_t i = 0; i < scores.size(); ++i) {
    experience::Trajectory sample;
    sample.score = scores[i];
    sample.tokens.assign(static_cast<std::size_t>(lengths[i]), 7);
    sample.behaviour.assign(sample.tokens.size(), -1.0f);
    group.samples.push_back(sample);
  }
  return group;
}

AlgoSettings estimator_settings(Chosen<Estimator> kind) {
  AlgoSettings algo;
  algo.advantage.estimator = kind;
  return algo;
}

UpdateAdvantages run(const AlgoSettings& algo,
                     const std::vector<experience::Group>& groups,
                     RunningMoments* moments = nullptr,
                     const TokenTable<float>& scored = {}) {
  RunningMoments own;
  auto result = update_advantages(algo, groups, scored, moments != nullptr ? *moments : own);
  EXPECT_TRUE(result.has_value());
  return result ? std::move(*result) : UpdateAdvantages{};
}

}  // namespace

TEST(UpdateAdvantages, EveryTokenHasItsSamplesAdvantage) {
  const auto got = run(estimator_settings("dr_grpo"), {group_of(0, {1, 3}, {2, 3})});
  EXPECT_EQ(got.tokens[0], (Rows{{-1, -1}, {1, 1, 1}}));
  EXPECT_TRUE(got.returns.empty());
}

// A = reward_coef A_reward + coef (log p_teacher - l_mu), bounded by 10, after all else.
TEST(UpdateAdvantages, ATeacherAddsItsLogRatioToEachToken) {
  auto algo = estimator_settings("dr_grpo");
  algo.teacher_coef = 0.5;
  algo.reward_coef = 2;
  auto group = group_of(0, {1, 3}, {2, 1});
  group.samples[0].teacher = {-3, -0.5f};  // l_mu is -1
  group.samples[1].teacher = {-31};
  const auto got = run(algo, {group});
  EXPECT_EQ(got.tokens[0], (Rows{{-2 - 1, -2 + 0.25}, {2 - 5}}));
  EXPECT_NEAR(got.kl_teacher, (2 - 0.5 + 30) / 3, 1e-12) << "not bounded";
  algo.reward_coef = 0;
  EXPECT_EQ(run(algo, {group}).tokens[0], (Rows{{-1, 0.25}, {-5}}));
}

TEST(UpdateAdvantages, WhitenedRewardsAreNotMixedWithTheTeachersShare) {
  auto algo = estimator_settings("reinforce_baseline");
  auto group = group_of(0, {0, 2}, {1, 1});
  group.samples[0].teacher = {-2};
  group.samples[1].teacher = {-1};
  const auto without = run(algo, {group});
  algo.teacher_coef = 1;
  const auto with = run(algo, {group});
  EXPECT_EQ(with.tokens[0][0][0], without.tokens[0][0][0] - 1);
  EXPECT_EQ(with.tokens[0][1][0], without.tokens[0][1][0]);
}

TEST(UpdateAdvantages, ASampleWithoutTheTeachersLogprobsIsRefused) {
  auto algo = estimator_settings("dr_grpo");
  algo.teacher_coef = 1;
  RunningMoments moments;
  const auto refused = update_advantages(algo, {group_of(0, {1, 2}, {2, 1})}, {}, moments);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("not one log-prob of the teacher per token"),
            std::string::npos);
}

TEST(UpdateAdvantages, ClipsScoresBeforeTheGroupStepOrAsOpenRlhfAfterIt) {
  auto algo = estimator_settings("dr_grpo");
  // 30 becomes 10, so the mean is 5.
  EXPECT_EQ(run(algo, {group_of(0, {0, 30}, {1, 1})}).tokens[0], (Rows{{-5}, {5}}));
  // OpenRLHF: -15 and 15, clipped to -10 and 10.
  algo.shaping.clip_order = "openrlhf";
  EXPECT_EQ(run(algo, {group_of(0, {0, 30}, {1, 1})}).tokens[0], (Rows{{-10}, {10}}));
}

TEST(UpdateAdvantages, ShapesBeforeItClips) {
  auto algo = estimator_settings("reinforce");
  algo.advantage.no_std_norm = true;
  algo.shaping.overlong_buffer_len = 2;
  algo.shaping.response_tokens_max = 2;
  // 12 - 1 clips to 10; clipped first it would be 9. The other loses half a point. Mean over tokens
  // (10 + 10 + 5.5) / 3 = 8.5.
  const auto got = run(algo, {group_of(0, {12, 6}, {2, 1})});
  EXPECT_EQ(got.tokens[0], (Rows{{1.5, 1.5}, {-3}}));
}

TEST(UpdateAdvantages, WhitensReinforceBaselineOverTheTokensOfTheUpdate) {
  const auto got = run(estimator_settings("reinforce_baseline"),
                       {group_of(0, {0, 2}, {3, 1}), group_of(1, {1, 1}, {2, 2})});
  // Per token: -1 -1 -1 1 0 0 0 0; mean -1/4, variance 4/8 - 1/16 = 7/16.
  const double scale = 1 / std::sqrt(7.0 / 16.0);
  EXPECT_NEAR(got.tokens[0][0][2], -0.75 * scale, 1e-14);
  EXPECT_NEAR(got.tokens[0][1][0], 1.25 * scale, 1e-14);
  EXPECT_NEAR(got.tokens[1][0][0], 0.25 * scale, 1e-14);
  EXPECT_NEAR(got.tokens[1][1][1], 0.25 * scale, 1e-14);
}

// Five samples, two of them in a group of equal scores: the others' advantages grow by 5/3.
TEST(UpdateAdvantages, GpgTakesTheShareOfGroupsWithoutAGradient) {
  const auto got = run(estimator_settings("gpg"),
                       {group_of(0, {0, 3, 0}, {2, 1, 1}), group_of(1, {1, 1}, {2, 2})});
  EXPECT_EQ(got.tokens[0], (Rows{{-5.0 / 3, -5.0 / 3}, {10.0 / 3}, {-5.0 / 3}}));
  EXPECT_EQ(got.tokens[1], (Rows{{0, 0}, {0, 0}}));
  EXPECT_EQ(run(estimator_settings("gpg"), {group_of(0, {1, 1}, {1, 1})}).tokens[0],
            (Rows{{0}, {0}}));
}

TEST(UpdateAdvantages, TakesTheKlOffTheRewardOfEachToken) {
  auto algo = estimator_settings("dr_grpo");
  algo.kl.init_coef = 0.5;
  algo.kl.use_loss = false;
  algo.kl.estimator = "k1";
  auto group = group_of(0, {1, 3}, {2, 1});
  group.samples[0].reference = {-1.25f, -1.5f};  // d = 0.25, 0.5
  group.samples[1].reference = {-0.5f};          // d = -0.5
  const auto got = run(algo, {group});
  // Group step -1 and 1; to go: -1 - 0.25 - 0.125, -1 - 0.25; 1 + 0.25.
  EXPECT_EQ(got.tokens[0], (Rows{{-1.375, -1.25}, {1.25}}));
  EXPECT_DOUBLE_EQ(got.kl_of_sample, (0.75 - 0.5) / 2);
  // As one action: scores 1 - 0.375 and 3 + 0.25, mean 1.9375.
  algo.kl.per_sample = true;
  EXPECT_EQ(run(algo, {group}).tokens[0], (Rows{{-1.3125, -1.3125}, {1.3125}}));
  // In the loss the rewards are left alone, but the KL is measured.
  algo.kl.use_loss = true;
  EXPECT_EQ(run(algo, {group}).tokens[0], (Rows{{-1, -1}, {1}}));
  EXPECT_DOUBLE_EQ(run(algo, {group}).kl_of_sample, 0.125);
}

TEST(UpdateAdvantages, MeasuresTheKlAtTheStartOfTheUpdate) {
  auto algo = estimator_settings("dr_grpo");
  algo.kl.init_coef = 1;
  algo.kl.use_loss = false;
  algo.kl.estimator = "k1";
  auto group = group_of(0, {1, 1}, {1, 1});
  for (auto& sample : group.samples)
    sample.reference = {-1.0f};
  const auto got = run(algo, {group}, nullptr, {{{-0.5f}, {-1.0f}}});
  EXPECT_EQ(got.tokens[0], (Rows{{-0.5}, {0}}));
}

TEST(UpdateAdvantages, GaeReadsValuesAndReturnsTargets) {
  auto algo = estimator_settings("gae");
  algo.advantage.no_std_norm = true;
  algo.advantage.lambd = 0.5;
  auto one = group_of(0, {4}, {3});  // a single sample is a group
  one.samples[0].values = {1, 2, 3};
  const auto got = run(algo, {one});
  // delta 1 1 1, A 1.75 1.5 1; targets A + V. Mean of the advantages 4.25 / 3.
  EXPECT_EQ(got.returns[0][0], (std::vector<float>{2.75f, 3.5f, 4}));
  EXPECT_NEAR(got.tokens[0][0][0], 1.75 - 4.25 / 3, 1e-14);
  EXPECT_NEAR(got.tokens[0][0][2], 1 - 4.25 / 3, 1e-14);
}

TEST(UpdateAdvantages, VtraceWeighsByTheStartOverTheBehaviour) {
  auto algo = estimator_settings("vtrace");
  algo.advantage.no_std_norm = true;
  auto one = group_of(0, {4}, {2});
  one.samples[0].values = {1, 2};
  const auto half = static_cast<float>(-1 + std::log(0.5));
  const TokenTable<float> scored = {{{half, half}}};
  // t=1: step 2, v_1 = 3; t=0: step 1, v_0 = 1 + 0.5 + 0.5 * 1 = 2.
  const auto got = run(algo, {one}, nullptr, scored);
  EXPECT_NEAR(got.returns[0][0][0], 2, 1e-6);
  EXPECT_NEAR(got.returns[0][0][1], 3, 1e-6);
  // A: 0 + 3 - 1 = 2, 4 - 2 = 2; whitened without deviation both are 0.
  EXPECT_NEAR(got.tokens[0][0][0], 0, 1e-6);
  // On policy it is gae to the bit.
  auto gae_algo = estimator_settings("gae");
  algo.advantage.lambd = gae_algo.advantage.lambd = 0.9;
  const auto a = run(algo, {one}), b = run(gae_algo, {one});
  EXPECT_EQ(a.returns, b.returns);
}

TEST(UpdateAdvantages, VtraceWithReinforceBringsItsOwnWeight) {
  auto algo = estimator_settings("vtrace");
  auto group = group_of(0, {4, 0}, {1, 1});
  for (auto& sample : group.samples)
    sample.values = {0};
  const TokenTable<float> scored = {{{static_cast<float>(-1 + std::log(0.25))}, {0.0f}}};
  const auto ratio = run(algo, {group}, nullptr, scored);
  EXPECT_NEAR(ratio.tokens[0][0][0], 1, 1e-12);
  algo.objective = "reinforce";
  const auto plain = run(algo, {group}, nullptr, scored);
  EXPECT_NEAR(plain.tokens[0][0][0], 0.25, 1e-6);
  EXPECT_NEAR(plain.tokens[0][1][0], -1, 1e-12);  // e^1 is cut to rho_max = 1
}

TEST(UpdateAdvantages, NormalisesByAllScoresSoFar) {
  auto algo = estimator_settings("dr_grpo");
  algo.shaping.normalise_running = true;
  RunningMoments moments;
  // 1, 3: mean 2, deviation 1: -1, 1.
  EXPECT_EQ(run(algo, {group_of(0, {1, 3}, {1, 1})}, &moments).tokens[0], (Rows{{-1}, {1}}));
  // And 5, 7: mean 4, deviation sqrt(5).
  const auto next = run(algo, {group_of(0, {5, 7}, {1, 1})}, &moments);
  EXPECT_NEAR(next.tokens[0][1][0], 1 / std::sqrt(5.0), 1e-14);
  EXPECT_EQ(moments.count, 4u);
}

TEST(UpdateAdvantages, SumsRunInTicketOrder) {
  auto algo = estimator_settings("reinforce_baseline");
  algo.shaping.normalise_running = true;
  std::vector<experience::Group> groups;
  for (std::uint32_t slot = 0; slot < 5; ++slot)
    groups.push_back(group_of(slot, {0.1 * slot, 0.7, 1.0 / (1 + slot)}, {3, 1, 2}));
  auto forward = run(algo, groups);
  std::reverse(groups.begin(), groups.end());
  auto backward = run(algo, groups);
  std::reverse(backward.tokens.begin(), backward.tokens.end());
  EXPECT_EQ(forward.tokens, backward.tokens);
}

TEST(UpdateAdvantages, NamesTheGroupThatIsAtFault) {
  const auto refused = [](const AlgoSettings& algo, const experience::Group& bad,
                          const char* what) {
    RunningMoments moments;
    const auto result = update_advantages(algo, {group_of(0, {0, 1}, {1, 1}), bad}, {}, moments);
    ASSERT_FALSE(result.has_value());
    EXPECT_NE(result.error().message.find(what), std::string::npos) << result.error().message;
  };
  const auto grpo = estimator_settings("group_norm");
  refused(grpo, group_of(3, {1}, {2}), "prompt 4");
  refused(grpo, group_of(5, {0, 1}, {1, 0}), "prompt 6");
  auto with_values = group_of(0, {0, 1}, {1, 1});
  for (auto& sample : with_values.samples)
    sample.values = {0};
  RunningMoments moments;
  const auto result = update_advantages(estimator_settings("gae"),
                                        {with_values, group_of(4, {1, 1}, {1, 2})}, {}, moments);
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("prompt 5 has not one value"), std::string::npos);
}

TEST(KeepBestAndWorst, LeavesAPairWithMarks) {
  std::vector<experience::Group> groups = {group_of(0, {1, 5, 0, 5}, {1, 2, 3, 1}),
                                           group_of(1, {2, 2, 2}, {1, 1, 1})};
  auto found = run(estimator_settings("dr_grpo"), groups);
  TokenTable<float> scored;
  keep_best_and_worst(groups, found.tokens, scored);
  ASSERT_EQ(groups[0].samples.size(), 2u);
  EXPECT_EQ(groups[0].samples[0].tokens.size(), 2u);
  EXPECT_EQ(groups[0].samples[1].score, 0.0);
  EXPECT_EQ(found.tokens[0], (Rows{{1, 1}, {-1, -1, -1}}));
  EXPECT_EQ(groups[1].samples.size(), 2u);
  EXPECT_EQ(std::fabs(found.tokens[1][0][0]), 0.0);
}

// Without a critic: rewards to go. R of 1 at the last token, steps of 0.5 and 0.25 at tokens 0
// and 2.
TEST(UpdateAdvantages, StepsAreRewardedAtTheirTokens) {
  auto algo = estimator_settings("reinforce");
  algo.advantage.no_std_norm = true;
  auto group = group_of(0, {1}, {4});
  group.samples[0].steps = {{0, 0.5}, {2, 0.25}};
  // To go: 1.75 1.25 1.25 1, less their mean 1.3125.
  EXPECT_EQ(run(algo, {group}).tokens[0], (Rows{{0.4375, -0.0625, -0.0625, -0.3125}}));
}

TEST(UpdateAdvantages, GaeTakesStepsAsRewardsOfTheirTokens) {
  auto algo = estimator_settings("gae");
  algo.advantage.gamma = 0.5;
  algo.advantage.lambd = 0.5;
  auto group = group_of(0, {1}, {3});
  group.samples[0].steps = {{1, 2}};
  group.samples[0].values = {0.5f, 1, 2};
  // delta: 0 + .5 - .5 = 0; 2 + 1 - 1 = 2; 1 - 2 = -1. A: -1; 2 - .25 = 1.75; .4375.
  const auto got = run(algo, {group});
  EXPECT_EQ(got.returns[0][0], (std::vector<float>{0.9375f, 2.75f, 1}));
}

// Steps of 1, 0 | 0.5: mean 0.5, deviation 0.5.
TEST(UpdateAdvantages, GroupEstimatorsCompareTheStepsOfAGroup) {
  auto group = group_of(0, {2, 2}, {3, 2});
  group.samples[0].steps = {{0, 1}, {1, 0}};
  group.samples[1].steps = {{1, 0.5}};
  EXPECT_EQ(run(estimator_settings("dr_grpo"), {group}).tokens[0], (Rows{{0, -0.5, 0}, {0, 0}}));
  const auto scaled = run(estimator_settings("group_norm"), {group}).tokens[0];
  EXPECT_NEAR(scaled[0][1], -0.5 / (0.5 + kGrpoStdFloor), 1e-15);
  EXPECT_NEAR(scaled[0][0], 0, 1e-15);
  EXPECT_EQ(scaled[1], (Values{0, 0}));
  // Each less the mean of the other two steps.
  EXPECT_EQ(run(estimator_settings("rloo"), {group}).tokens[0],
            (Rows{{0.75 - 0.75, -0.75, 0}, {0, 0}}));
  auto bare = estimator_settings("dr_grpo");
  bare.compares_steps = false;
  EXPECT_EQ(run(bare, {group}).tokens[0], (Rows{{1, 0, 0}, {0.5, 0.5}}));
}

TEST(UpdateAdvantages, EqualOrSingleStepsGiveNothingWhereTheyAreCompared) {
  auto group = group_of(0, {1, 1}, {2, 2});
  group.samples[0].steps = {{0, 0.3}};
  EXPECT_EQ(run(estimator_settings("group_norm"), {group}).tokens[0], (Rows{{0, 0}, {0, 0}}));
  group.samples[1].steps = {{1, 0.3}};
  EXPECT_EQ(run(estimator_settings("group_norm"), {group}).tokens[0], (Rows{{0, 0}, {0, 0}}));
}

// A group of equal scores learns from steps that differ, so gpg takes no share of it.
TEST(UpdateAdvantages, StepsThatDifferCountAsAGradient) {
  auto group = group_of(0, {1, 1}, {1, 1});
  group.samples[0].steps = {{0, 1}};
  group.samples[1].steps = {{0, 0}};
  const auto got = run(estimator_settings("gpg"), {group, group_of(1, {0, 2}, {1, 1})});
  EXPECT_EQ(got.tokens[0], (Rows{{0.5}, {-0.5}}));
  EXPECT_EQ(got.tokens[1], (Rows{{-1}, {1}}));
}

}  // namespace troupe::learn
