// Log-probs of the prompt's own tokens: those of the scorer bit for bit, in sample 0 alone, however
// the prompt is cut and whatever is cached.
#include "runtime/model/group_plan.hpp"
#include "runtime/model/score.hpp"
#include "tests/unit/runtime/engine/naive_generator.hpp"
#include "tests/unit/runtime/engine/tiny_engine.hpp"

#include <gtest/gtest.h>

namespace troupe::engine {
namespace {

class PromptLogprobs : public testing::Test {
 protected:
  GroupRequest scored(std::uint64_t id, std::uint64_t length, std::int32_t samples = 1) {
    core::Rng rng(4);
    GroupRequest request = request_of(id, random_prompt(rng, length), samples, 4);
    request.sampling.temperature = 0.7f;  // of the draws; the prompt is scored at 1
    request.sampling.prompt_logprobs = true;
    return request;
  }
  // Prompt tokens 1 .. as the response of token 0.
  std::vector<float> by_scorer(const std::vector<std::int32_t>& prompt) {
    const std::span<const std::int32_t> all(prompt);
    const std::span<const std::int32_t> rest = all.subspan(1);
    model::SampleGroup group;
    group.prompt = all.subspan(0, 1);
    group.responses = {rest};
    model::GroupPlan plan;
    const std::vector<model::SampleGroup> groups = {group};
    EXPECT_TRUE(model::build_group_plan(groups, weights_->spec(), 1, plan));
    std::vector<float> logprobs(rest.size());
    model::ScoreScratch scratch;
    model::score_logprobs(team_, *weights_, plan.plan, plan.targets, 1.0f, scratch, logprobs);
    return logprobs;
  }

  Weights weights_ = tiny_weights();
  core::SerialTeam team_;
};

TEST_F(PromptLogprobs, AreThoseOfTheScorer) {
  for (const std::int32_t rows : {1, 7, 16, 50, 512}) {
    SCOPED_TRACE(rows);
    auto e = make_engine(weights_, limits_of(8, rows, 60), team_);
    const GroupRequest request = scored(1, 90, 3);
    const Samples samples = run_all(*e, {request});
    EXPECT_TRUE(same_bits(samples.at({1, 0}).prompt_logprobs, by_scorer(request.prompt)));
    EXPECT_TRUE(samples.at({1, 1}).prompt_logprobs.empty());
    expect_same(samples, naive_all(*weights_, {request}));
    EXPECT_EQ(e->counters().decode_tokens, 12u) << "what is scored is not drawn";
  }
}

TEST_F(PromptLogprobs, AreWholeWhenThePromptIsCached) {
  auto e = make_engine(weights_, limits_of(8, 64, 60), team_);
  GroupRequest plain = scored(1, 90);
  plain.sampling.prompt_logprobs = false;
  EXPECT_TRUE(run_all(*e, {plain}).at({1, 0}).prompt_logprobs.empty());
  const GroupRequest request = scored(2, 90);
  const Samples samples = run_all(*e, {request});
  EXPECT_TRUE(same_bits(samples.at({2, 0}).prompt_logprobs, by_scorer(request.prompt)));
  EXPECT_EQ(e->counters().prefill_tokens, 180u);
  plain.id.value = 3;
  (void)run_all(*e, {plain});
  EXPECT_EQ(e->counters().prefill_tokens, 190u) << "a scored prompt is there for others";
}

// The first alternative is never less likely than the token that stands there, and equals it where
// they are the same.
TEST_F(PromptLogprobs, ComeWithTheMostLikelyTokens) {
  auto e = make_engine(weights_, limits_of(8, 16, 60), team_);
  GroupRequest request = scored(1, 50, 2);
  request.sampling.top_logprobs = 3;
  const Samples samples = run_all(*e, {request});
  const Sample& first = samples.at({1, 0});
  ASSERT_EQ(first.prompt_top_logprobs.size(), 3u * 49);
  EXPECT_EQ(first.top_logprobs.size(), 3u * 4);
  EXPECT_TRUE(samples.at({1, 1}).prompt_top_logprobs.empty());
  for (std::size_t i = 0; i < 49; ++i) {
    const TokenLogprob* top = &first.prompt_top_logprobs[3 * i];
    EXPECT_GE(top[0].logprob, top[1].logprob);
    EXPECT_GE(top[1].logprob, top[2].logprob);
    EXPECT_GE(top[0].logprob, first.prompt_logprobs[i]);
    for (int k = 0; k < 3; ++k)
      if (top[k].token == request.prompt[i + 1]) {
        EXPECT_EQ(top[k].logprob, first.prompt_logprobs[i]);
      }
  }
}

TEST_F(PromptLogprobs, OfOneTokenAreNone) {
  auto e = make_engine(weights_, limits_of(8, 64, 60), team_);
  EXPECT_TRUE(run_all(*e, {scored(1, 1)}).at({1, 0}).prompt_logprobs.empty());
}

TEST_F(PromptLogprobs, AreOfTheNewestWeightsWhenThoseComeInBetween) {
  const Weights old = tiny_weights(2, 1);
  for (int steps = 1; steps < 9; ++steps) {
    SCOPED_TRACE(steps);
    auto e = make_engine(old, limits_of(8, 10, 60), team_);
    const GroupRequest request = scored(1, 90);
    ASSERT_TRUE(e->submit(request));
    Samples samples;
    for (int i = 0; i < steps; ++i)
      step_into(*e, samples);
    ASSERT_TRUE(e->set_weights(weights_, KvAction::kRecompute));
    while (!e->idle())
      step_into(*e, samples);
    EXPECT_TRUE(same_bits(samples.at({1, 0}).prompt_logprobs, by_scorer(request.prompt)));
  }
}

TEST_F(PromptLogprobs, ComeBackAsFarAsTheyAreWhenTheGroupIsCutOff) {
  auto e = make_engine(weights_, limits_of(8, 10, 60), team_);
  const GroupRequest request = scored(1, 90, 2);
  ASSERT_TRUE(e->submit(request));
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(e->step());
  const std::vector<Sample> cut = e->abort({1});
  ASSERT_EQ(cut.size(), 2u);
  std::vector<float> expected = by_scorer(request.prompt);
  expected.resize(30);
  EXPECT_TRUE(same_bits(cut[0].prompt_logprobs, expected));
}

}  // namespace
}  // namespace troupe::engine
