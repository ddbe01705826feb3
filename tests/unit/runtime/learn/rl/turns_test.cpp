// Learning over turns: credit to tokens, turns and episodes, and forks, on values worked out by
// hand.
#include "runtime/learn/advantage/reward_shaping.hpp"
#include "runtime/learn/advantage/turn_credit.hpp"
#include "runtime/learn/advantage/update_advantages.hpp"
#include "runtime/learn/rl/update_context.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::learn {
namespace {

using Values = std::vector<double>;
using Rows = std::vector<Values>;
using experience::Shares;
using experience::Trajectory;

Trajectory drawn(std::size_t tokens,
                 double score,
                 std::vector<experience::Turn> turns,
                 std::uint32_t episode) {
  Trajectory sample;
  for (std::size_t t = 0; t < tokens; ++t)
    sample.tokens.push_back(static_cast<std::int32_t>(10 + t));
  sample.behaviour.assign(tokens, -1.0f);
  sample.versions = experience::VersionRuns::all(0, tokens);
  sample.score = score;
  sample.turns = std::move(turns);
  sample.episode = episode;
  return sample;
}

// Episode 1 draws a0 a1, then a2 a3; its fork behind a0 a1 draws b0. Episode 2 draws d0, then d1.
experience::Group forked(const Values& scores = {3, 1, 0}) {
  experience::Group group;
  group.prompt = {1};
  group.samples = {drawn(4, scores[0], {{0, {}}, {2, {50}}}, 1),
                   drawn(1, scores[1], {{0, {10, 11, 51}}}, 1),
                   drawn(2, scores[2], {{0, {52}}, {1, {53}}}, 2)};
  group.samples[1].shares = Shares{0, 2};
  return group;
}

AlgoSettings settings_for(Chosen<Estimator> estimator, Chosen<Credit> credit = "token") {
  AlgoSettings algo;
  algo.advantage.estimator = estimator;
  algo.credit = credit;
  algo.reward_clip_low = -100;
  algo.reward_clip_high = 100;
  algo.compares_steps = false;
  return algo;
}

UpdateAdvantages run(const AlgoSettings& algo,
                     const std::vector<experience::Group>& groups,
                     RunningMoments* moments = nullptr) {
  RunningMoments own;
  auto found = update_advantages(algo, groups, {}, moments != nullptr ? *moments : own);
  EXPECT_TRUE(found.has_value()) << (found ? "" : found.error().message);
  return found ? std::move(*found) : UpdateAdvantages{};
}

void expect_near(const Rows& got, const Rows& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), want[i].size()) << i;
    for (std::size_t t = 0; t < got[i].size(); ++t)
      EXPECT_NEAR(got[i][t], want[i][t], 1e-12) << i << ", " << t;
  }
}

}  // namespace

// The episodes have 2 and 0, their mean is 1; the leaves have 3 - 1 and 1 - 1.
TEST(Forks, ATokenHasTheMeanOfItsLeaves) {
  expect_near(run(settings_for("dr_grpo"), {forked()}).tokens[0], {{1, 1, 2, 2}, {0}, {-1, -1}});
}

TEST(Forks, AnEpisodeCountsOnceInTheGroupsStatistics) {
  const double scale = std::sqrt(2.0) + kGrpoStdFloor;  // of 2 and 0
  expect_near(run(settings_for("group_norm"), {forked()}).tokens[0],
              {{1 / scale, 1 / scale, 2 / scale, 2 / scale}, {0}, {-1 / scale, -1 / scale}});
  // Each episode is compared with the other alone: 2 - 0 and 0 - 2.
  expect_near(run(settings_for("rloo"), {forked()}).tokens[0], {{2, 2, 3, 3}, {1}, {-2, -2}});
  expect_near(run(settings_for("maxrl"), {forked()}).tokens[0], {{1, 1, 2, 2}, {0}, {-1, -1}});
  // Episode 1 drew 5 tokens, episode 2 drew 2: the baseline is (5 * 2 + 2 * 0) / 7.
  const double base = 10.0 / 7;
  expect_near(run(settings_for("opo"), {forked()}).tokens[0],
              {{2 - base, 2 - base, 3 - base, 3 - base}, {1 - base}, {-base, -base}});
}

// Episodes of equal scores have no gradient, also where the leaves of one differ.
TEST(Forks, EpisodesOfEqualScoresHaveAdvantageZero) {
  expect_near(run(settings_for("group_norm"), {forked({3, 1, 2})}).tokens[0],
              {{0, 0, 0, 0}, {0}, {0, 0}});
}

TEST(Forks, TheNormaliserCountsAnEpisodeOnce) {
  auto algo = settings_for("dr_grpo");
  algo.shaping.normalise_running = true;
  RunningMoments moments;
  run(algo, {forked()}, &moments);
  EXPECT_EQ(moments.count, 2u);
  EXPECT_EQ(moments.mean, 1);
}

TEST(Credit, OfTokensDiscountsEachToken) {
  auto group = forked();
  group.samples[0].steps = {{1, 8}};  // at the end of its first turn
  group.samples[2].steps = {{0, 4}};
  auto algo = settings_for("dr_grpo");
  algo.advantage.gamma = 0.5;
  // The leaf: 2, then 1, 8.5, 4.25; the fork: 0, then 8, 4.
  expect_near(run(algo, {group}).tokens[0], {{4.125, 8.25, 1, 2}, {0}, {3.5, -1}});
}

TEST(Credit, OfTurnsDiscountsTurnsAlone) {
  auto group = forked();
  group.samples[0].steps = {{1, 8}};
  group.samples[2].steps = {{0, 4}};
  auto algo = settings_for("dr_grpo", "turn");
  algo.advantage.gamma = 0.5;
  // The leaf: 2, then 8 + 1; the fork: 0, then 8.
  expect_near(run(algo, {group}).tokens[0], {{8.5, 8.5, 2, 2}, {0}, {3.5, -1}});
}

// Leaves have 3 + 8 and 1 + 8, episode 2 has 0 + 4: means 10 and 4.
TEST(Credit, OfEpisodesIsPartOfTheScore) {
  auto group = forked();
  group.samples[0].steps = {{1, 8}};
  group.samples[2].steps = {{0, 4}};
  expect_near(run(settings_for("dr_grpo", "episode"), {group}).tokens[0],
              {{3, 3, 4, 4}, {2}, {-3, -3}});
}

TEST(Credit, WithoutTurnsATurnIsTheSample) {
  auto algo = settings_for("dr_grpo", "turn");
  algo.advantage.gamma = 0.5;
  expect_near(
      {path_returns(algo, {Values{1, 2, 4}, {}, {}}, std::vector<std::uint32_t>{0}).advantages},
      {{7, 7, 7}});
}

// Turns of two tokens and one; rewards 1 and 5, values 1 and 3 at their first tokens.
TEST(Credit, GaeOverTurnsReadsTheValueAtATurnsFirstToken) {
  auto algo = settings_for("gae", "turn");
  algo.advantage.gamma = 0.5;
  algo.advantage.lambd = 0.5;
  const Values rewards = {0, 1, 5}, values = {1, 2, 3};
  const std::vector<std::uint32_t> turns = {0, 2};
  const TokenReturns got = path_returns(algo, {rewards, values, {}}, turns);
  // delta: 5 - 3 = 2, then 1 + 0.5 * 3 - 1 = 1.5; A: 2, then 1.5 + 0.25 * 2.
  EXPECT_EQ(got.advantages, (Values{2, 2, 2}));
  EXPECT_EQ(got.targets, (Values{3, 3, 5}));
  algo.advantage.estimator = "vtrace";
  const TokenReturns traced = path_returns(algo, {rewards, values, Values{0, 0, 0}}, turns);
  EXPECT_EQ(traced.advantages, got.advantages);
  EXPECT_EQ(traced.targets, got.targets);
  // The weight of a turn is the product of its tokens': e^-1 e^1 is 1.
  EXPECT_EQ(path_returns(algo, {rewards, values, Values{-1, 1, 0}}, turns).targets, got.targets);
}

TEST(Forks, TheCriticsTargetsAreMeansToo) {
  auto group = forked();
  for (auto& sample : group.samples)
    sample.values.assign(sample.tokens.size(), 0.0f);
  const auto got = run(settings_for("gae"), {group});
  EXPECT_EQ(got.returns[0], (std::vector<std::vector<float>>{{2, 2, 3, 3}, {1}, {0, 0}}));
}

TEST(Forks, KlOfASampleIsThatOfItsPath) {
  auto group = forked({0, 0, 0});
  for (auto& sample : group.samples)
    sample.reference.assign(sample.tokens.size(), -2.0f);  // d = 1 at each token
  auto algo = settings_for("dr_grpo");
  algo.kl.init_coef = 1;
  algo.kl.estimator = "k1";
  algo.kl.use_loss = false;
  algo.kl.per_sample = true;
  // Paths of 4, 3 and 2 tokens: scores -4, -3, -2; episodes -3.5 and -2, their mean -2.75.
  const auto got = run(algo, {group});
  expect_near(got.tokens[0], {{-0.75, -0.75, -1.25, -1.25}, {-0.25}, {0.75, 0.75}});
  EXPECT_EQ(got.kl_of_sample, 3.5) << "seven tokens, each once, of two episodes";
}

TEST(Forks, PairsAreWholeEpisodes) {
  std::vector<experience::Group> groups = {forked()};
  groups[0].samples.insert(groups[0].samples.begin(), drawn(3, 1.5, {}, 0));
  groups[0].samples[2].shares = Shares{1, 2};
  auto advantages = run(settings_for("dr_grpo"), groups).tokens;
  TokenTable<float> scored = {{{1, 2, 3}, {4, 5, 6, 7}, {8}, {9, 10}}};
  keep_best_and_worst(groups, advantages, scored);
  ASSERT_EQ(groups[0].samples.size(), 3u);
  EXPECT_EQ(groups[0].samples[1].shares, (Shares{0, 2}));
  EXPECT_EQ(advantages[0], (Rows{{1, 1, 1, 1}, {1}, {-1, -1}}));
  EXPECT_EQ(scored[0], (std::vector<std::vector<float>>{{4, 5, 6, 7}, {8}, {9, 10}}));

  AlgoSettings algo;
  algo.objective = "online_dpo";
  algo.reducer = "sample_mean";
  for (auto& sample : groups[0].samples)
    sample.reference.assign(sample.tokens.size(), -1.0f);
  UpdateContext update{
      .groups = groups, .advantages = advantages, .plan = *plan_update(groups, {}), .pairs = 1};
  const MicroBatch& micro = update.plan.mini_batches[0].micro_batches[0];
  const TokenBatch batch = token_batch(algo, update, micro, 0);
  EXPECT_EQ(batch.sample_ends, (std::vector<std::size_t>{5, 7})) << "all leaves of one, then";
}

// Two episodes of 5 and 2 drawn tokens: with sample_mean each token of the first weighs 1 / (2 *
// 5).
TEST(Forks, ReducersCountEpisodes) {
  const std::vector<experience::Group> groups = {forked()};
  UpdateContext update{.groups = groups,
                       .advantages = run(settings_for("dr_grpo"), groups).tokens,
                       .plan = *plan_update(groups, {})};
  EXPECT_EQ(update.plan.samples, 2);
  EXPECT_EQ(update.plan.tokens, 7);
  EXPECT_EQ(update.plan.rows, 1 + (5 - 1) + (4 - 1) + (4 - 1)) << "prompt, rows without their last";
  AlgoSettings algo;
  algo.reducer = "sample_mean";
  const TokenBatch batch =
      token_batch(algo, update, update.plan.mini_batches[0].micro_batches[0], 0);
  EXPECT_EQ(batch.weight, (Values{0.1, 0.1, 0.1, 0.1, 0.1, 0.25, 0.25}));
  EXPECT_EQ(batch.sample_ends, (std::vector<std::size_t>{4, 5, 7}));
}

TEST(Turns, ThePenaltyOfLengthIsOfTheLongestTurn) {
  RewardShaping shaping;
  shaping.overlong_buffer_len = 2;
  shaping.response_tokens_max = 4;
  Trajectory sample = drawn(6, 1, {{0, {1}}, {2, {1}}, {5, {1}}}, 0);
  EXPECT_EQ(shaped_score(shaping, sample, 1), 0.5) << "turns of 2, 3 and 1 tokens";
  sample.turns.clear();
  EXPECT_EQ(shaped_score(shaping, sample, 1), 0.0);
}

}  // namespace troupe::learn
