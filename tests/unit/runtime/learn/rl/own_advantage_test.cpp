// A user's own advantages in an update: the arrays that go out, and where the numbers that come
// back are put. The worker process: tests/unit/actors/policy/python_advantage_test.cpp.
#include "runtime/learn/rl/own_advantage.hpp"

#include <gtest/gtest.h>

namespace troupe::learn {
namespace {

using Values = std::vector<double>;

// Gives what it is told to, and keeps what it was asked.
class Told final : public AdvantageSource {
 public:
  explicit Told(TokenNumbers numbers) : numbers_(std::move(numbers)) {}
  core::Result<TokenNumbers> compute(const UpdateArrays& update) override {
    asked = update;
    if (numbers_.advantages.empty())
      return core::fail(core::ErrorCode::kData, "the function raised");
    return numbers_;
  }
  UpdateArrays asked;

 private:
  TokenNumbers numbers_;
};

experience::Trajectory sample_of(double score, std::vector<float> behaviour) {
  experience::Trajectory sample;
  sample.score = score;
  sample.tokens.assign(behaviour.size(), 7);
  sample.versions = experience::VersionRuns::all(3, behaviour.size());
  sample.behaviour = std::move(behaviour);
  return sample;
}

// Slot 1 arrived first: one sample of a token. Then slot 0: two samples, the second cut by length.
UpdateContext two_groups() {
  UpdateContext update;
  update.groups.resize(2);
  update.groups[0].ticket = {6, 1, 0};
  update.groups[0].samples = {sample_of(5, {-1})};
  update.groups[1].ticket = {6, 0, 0};
  update.groups[1].samples = {sample_of(2, {-2, -3}), sample_of(4, {-4})};
  update.groups[1].samples[1].finish = experience::FinishReason::kLength;
  update.advantages = {{{0.5}}, {{1, 2}, {3}}};
  return update;
}

TEST(OwnAdvantage, ArraysStandInTicketOrder) {
  UpdateContext update = two_groups();
  const UpdateArrays arrays = arrays_of(update);
  EXPECT_EQ(arrays.update, 6u);
  EXPECT_EQ(arrays.scores, (Values{2, 4, 5}));
  EXPECT_EQ(arrays.groups, (Values{0, 0, 1}));
  EXPECT_EQ(arrays.lengths, (Values{2, 1, 1}));
  EXPECT_EQ(arrays.truncated, (Values{0, 1, 0}));
  EXPECT_EQ(arrays.advantages, (Values{1, 2, 3, 0.5}));
  EXPECT_EQ(arrays.sampled_logprobs, (Values{-2, -3, -4, -1}));
  EXPECT_EQ(arrays.logprobs, arrays.sampled_logprobs);
  EXPECT_EQ(arrays.versions, (Values{3, 3, 3, 3}));
  EXPECT_TRUE(arrays.reference_logprobs.empty());
  EXPECT_TRUE(arrays.values.empty());
  update.scored = {{{-1.5f}}, {{-2.5f, -3.5f}, {-4.5f}}};
  EXPECT_EQ(arrays_of(update).logprobs, (Values{-2.5, -3.5, -4.5, -1.5}));
}

TEST(OwnAdvantage, EpisodesAndTurnsAreNumbered) {
  UpdateContext update = two_groups();
  EXPECT_EQ(arrays_of(update).episodes, (Values{0, 1, 0}));
  EXPECT_EQ(arrays_of(update).turns, (Values{0, 0, 0, 0}));
  auto& forked = update.groups[1].samples;
  forked[0].turns = {{0, {}}, {1, {8}}};
  forked[0].episode = forked[1].episode = 1;
  EXPECT_EQ(arrays_of(update).episodes, (Values{0, 0, 0}));
  EXPECT_EQ(arrays_of(update).turns, (Values{0, 1, 0, 0}));
}

TEST(OwnAdvantage, NumbersGoToTheirTokens) {
  UpdateContext update = two_groups();
  Told told({{10, 20, 30, 40}, {1, 1, 1, 1}});
  ASSERT_TRUE(apply_own_advantage(&told, nullptr, update));
  EXPECT_EQ(update.advantages, (TokenTable<double>{{{40}}, {{10, 20}, {30}}}));
  EXPECT_TRUE(update.token_weights.empty()) << "as without weights, to the bit";
  Told weighs({{1, 2, 3, 4}, {1, 0, 0.5, 2}});
  ASSERT_TRUE(apply_own_advantage(&weighs, nullptr, update));
  EXPECT_EQ(weighs.asked.advantages, (Values{10, 20, 30, 40}));
  EXPECT_EQ(update.token_weights, (TokenTable<double>{{{2}}, {{1, 0}, {0.5}}}));
  Told raises({});
  EXPECT_EQ(apply_own_advantage(&raises, nullptr, update).error().code, core::ErrorCode::kData);
}

// Three tokens of slot 0 with 1/3 each in the mean of the micro-batch; the weights multiply that.
TEST(OwnAdvantage, AWeightMultipliesTheTokensShareOfTheLoss) {
  UpdateContext update = two_groups();
  MicroBatch micro;
  micro.parts = {{1, 0, 2}};
  update.plan.tokens = 3;
  update.plan.samples = 2;
  update.plan.mini_batches.resize(1);
  AlgoSettings algo;
  const Values plain = token_batch(algo, update, micro, 3).weight;
  EXPECT_EQ(plain, Values(3, 1.0 / 3));
  update.token_weights = {{{9}}, {{1, 0}, {0.5}}};
  EXPECT_EQ(token_batch(algo, update, micro, 3).weight, (Values{1.0 / 3, 0, 0.5 / 3}));
}

}  // namespace
}  // namespace troupe::learn
