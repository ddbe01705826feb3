// Plans of sequences with chosen targets and of last tokens: the bits of each computed alone.
#include "runtime/model/sequence_plan.hpp"

#include "runtime/model/layer_grad.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/train_logprobs.hpp"
#include "tests/unit/runtime/model/test_models.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace troupe::model {
namespace {

using Tokens = std::vector<std::int32_t>;
using Learn = std::vector<std::uint8_t>;

// Hidden states of the plan's logit rows, after the final norm.
std::vector<float> last_hidden(const TestModel& model, const ForwardPlan& plan) {
  const ModelSpec& spec = model.weights.spec();
  ForwardScratch scratch;
  KvPool pool(spec, 1, kv_blocks_of(plan));
  const auto rows = static_cast<std::int64_t>(plan.logit_rows.size());
  scratch.reserve(core::host_memory(), spec, plan.rows(), rows);
  core::SerialTeam team;
  team.run([&](core::Team member) { forward_hidden(member, model.weights, plan, pool, scratch); });
  return {scratch.head_in.data(), scratch.head_in.data() + rows * spec.hidden};
}

TEST(SequencePlan, TakesOnlyRowsThatPredictATarget) {
  const ModelSpec spec = tiny_spec();
  const Tokens a = {1, 2, 3, 4, 5, 6}, b = {7, 8, 9};
  const Learn learn_a = {0, 0, 1, 0, 1, 0}, learn_b = {0, 0, 1};
  GroupPlan out;
  ASSERT_TRUE(build_sequence_plan(std::vector<Sequence>{{a, learn_a}, {b, learn_b}}, spec, 1, out));
  EXPECT_EQ(out.plan.tokens, (Tokens{1, 2, 3, 4, 7, 8}));  // 5, 6 and 9 have no row
  EXPECT_EQ(out.plan.positions, (Tokens{0, 1, 2, 3, 0, 1}));
  EXPECT_EQ(out.plan.logit_rows, (Tokens{1, 3, 5}));
  EXPECT_EQ(out.targets.token, (Tokens{3, 5, 9}));
  EXPECT_EQ(out.targets.row, (Tokens{0, 1, 2}));
  EXPECT_EQ(out.plan.segments.size(), 2u);
  EXPECT_EQ(rows_of(Sequence{a, learn_a}), 4);
}

// A place's own row has all choices; the first token may be a place.
TEST(SequencePlan, ChoicesAreReadAtTheirPlaces) {
  const ModelSpec spec = tiny_spec();
  const Tokens a = {1, 2, 3, 4, 5}, b = {7, 8}, choices = {9, 4};
  const Learn places_a = {0, 1, 0, 1, 0}, places_b = {1, 0};
  GroupPlan out;
  ASSERT_TRUE(build_choice_plan(std::vector<Sequence>{{a, places_a}, {b, places_b}}, choices, spec,
                                1, out));
  EXPECT_EQ(out.plan.tokens, (Tokens{1, 2, 3, 4, 7}));
  EXPECT_EQ(out.plan.logit_rows, (Tokens{1, 3, 4}));
  EXPECT_EQ(out.targets.token, (Tokens{9, 4, 9, 4, 9, 4}));
  EXPECT_EQ(out.targets.row, (Tokens{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(rows_of_choice({a, places_a}), 4);
  EXPECT_EQ(rows_of_choice({b, Learn{0, 0}}), 0);
  const Tokens outside = {static_cast<std::int32_t>(spec.vocab)};
  EXPECT_FALSE(build_choice_plan(std::vector<Sequence>{{a, places_a}}, outside, spec, 1, out));
  // Their log-probs are those of a sequence in which the choice is the next token.
  const TestModel model(tiny_spec());
  core::SerialTeam team;
  ASSERT_TRUE(build_choice_plan(std::vector<Sequence>{{a, places_a}}, choices, spec, 1, out));
  const auto read = score_logprobs(team, model.weights, out.plan, out.targets, 1);
  for (std::size_t k = 0; k < choices.size(); ++k) {
    const Tokens next = {1, 2, 3, 4, choices[k]};
    const Learn last = {0, 0, 0, 0, 1};
    ASSERT_TRUE(build_sequence_plan(std::vector<Sequence>{{next, last}}, spec, 1, out));
    EXPECT_EQ(read[2 + k], score_logprobs(team, model.weights, out.plan, out.targets, 1)[0]);
  }
}

TEST(SequencePlan, LogprobsAndGradientsAreThoseOfEachSequenceAlone) {
  const TestModel model(qwen_spec());
  const ModelSpec& spec = model.weights.spec();
  core::SerialTeam team;
  std::vector<Tokens> tokens;
  std::vector<Learn> learn;
  for (const int length : {33, 2, 17, 50}) {
    tokens.push_back(some_tokens(length, spec.vocab, length));
    learn.emplace_back(static_cast<std::size_t>(length), std::uint8_t{0});
    for (int i = 1; i < length; ++i)
      learn.back()[static_cast<std::size_t>(i)] = (i % 3 != 0) ? 1 : 0;
  }
  std::vector<Sequence> sequences;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    sequences.push_back({tokens[i], learn[i]});
  GroupPlan packed;
  ASSERT_TRUE(build_sequence_plan(sequences, spec, 1, packed));
  ParamStore grads = model.params.same_layout();
  TrainForward forward(team, model.params, &grads);
  const auto out =
      forward.logprobs(model.weights, packed.plan, packed.targets, 1.0f, false).logprobs;
  out.sum().backward();

  ParamStore alone = model.params.same_layout();
  TrainForward single(team, model.params, &alone);
  std::int64_t target = 0;
  for (std::size_t s = 0; s < tokens.size(); ++s) {
    // The contract of the group plan: all tokens after the first are targets.
    const std::span<const std::int32_t> all = tokens[s];
    const SampleGroup group{all.first(1), {all.subspan(1)}};
    GroupPlan plan;
    ASSERT_TRUE(build_group_plan({&group, 1}, spec, 1, plan));
    const auto every =
        single.logprobs(model.weights, plan.plan, plan.targets, 1.0f, false).logprobs;
    at::Tensor mask = at::zeros({every.numel()});
    for (std::size_t i = 1; i < tokens[s].size(); ++i) {
      if (learn[s][i] == 0) continue;
      mask[static_cast<std::int64_t>(i) - 1] = 1;
      EXPECT_EQ(out[target++].item<float>(), every[static_cast<std::int64_t>(i) - 1].item<float>());
    }
    (every * mask).sum().backward();
  }
  EXPECT_EQ(target, out.numel());
  for (std::int64_t i = 0; i < grads.size(); ++i) {
    ASSERT_NEAR(grads.data()[i], alone.data()[i], 2e-5f + 1e-4f * std::abs(alone.data()[i])) << i;
  }
}

TEST(SequencePlan, NothingLearnedTakesNoRow) {
  const Tokens a = {1, 2, 3};
  const Learn none = {0, 0, 0};
  GroupPlan out;
  ASSERT_TRUE(build_sequence_plan(std::vector<Sequence>{{a, none}}, tiny_spec(), 1, out));
  EXPECT_EQ(out.plan.rows(), 0);
  EXPECT_EQ(out.targets.size(), 0);
}

TEST(SequencePlan, RefusesWhatHasNoPrediction) {
  const ModelSpec spec = tiny_spec();
  const auto message = [&](const Tokens& tokens, const Learn& learn) {
    GroupPlan out;
    const auto built = build_sequence_plan(std::vector<Sequence>{{tokens, learn}}, spec, 1, out);
    return built ? std::string() : built.error().message;
  };
  EXPECT_NE(message({1, 2}, {1, 1}).find("first token cannot be a target"), std::string::npos);
  EXPECT_NE(message({1, 257}, {0, 1}).find("257 is outside the vocabulary of 257"),
            std::string::npos);
  const Tokens longest(257, 3);
  Learn learn(257, 0);
  learn.back() = 1;
  EXPECT_EQ(message(longest, learn), "");
  learn.push_back(1);
  EXPECT_NE(message(Tokens(258, 3), learn).find("exceed the context of 256"), std::string::npos);
}

TEST(LastTokenPlan, ReadsTheLastRowOfEverySampleAsIfAlone) {
  const TestModel model(tiny_spec());
  const ModelSpec& spec = model.weights.spec();
  for (const int prompt_length : {5, 16, 33}) {
    const Tokens prompt = some_tokens(prompt_length, spec.vocab, 1);
    const Tokens chosen = some_tokens(20, spec.vocab, 2), rejected = some_tokens(1, spec.vocab, 3);
    const SampleGroup group{prompt, {chosen, rejected}};
    GroupPlan out;
    ASSERT_TRUE(build_group_plan({&group, 1}, spec, 1, out, GroupRows::kLast));
    EXPECT_EQ(out.plan.rows(), prompt_length + 21);
    EXPECT_EQ(out.plan.rows(), rows_of(group, GroupRows::kLast));
    EXPECT_EQ(out.targets.size(), 0);
    ASSERT_EQ(out.plan.logit_rows.size(), 2u);
    EXPECT_EQ(out.plan.tokens[static_cast<std::size_t>(out.plan.logit_rows[0])], chosen.back());
    const std::vector<float> together = last_hidden(model, out.plan);
    for (std::size_t i = 0; i < 2; ++i) {
      Tokens whole = prompt;
      whole.insert(whole.end(), group.responses[i].begin(), group.responses[i].end());
      const std::span<const std::int32_t> view = whole;
      const SampleGroup single{view.first(1), {view.subspan(1)}};
      GroupPlan plan;
      ASSERT_TRUE(build_group_plan({&single, 1}, spec, 1, plan, GroupRows::kLast));
      const std::vector<float> alone = last_hidden(model, plan.plan);
      EXPECT_EQ(
          std::memcmp(alone.data(), together.data() + i * static_cast<std::size_t>(spec.hidden),
                      alone.size() * sizeof(float)),
          0);
    }
  }
}

TEST(LastTokenPlan, RefusesAnEmptyResponse) {
  const Tokens prompt = {1, 2}, answer = {3};
  const SampleGroup group{prompt, {answer, {}}};
  GroupPlan out;
  const auto built = build_group_plan({&group, 1}, tiny_spec(), 1, out, GroupRows::kLast);
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().message, "group 0, sample 1: an empty response has no last token");
}

}  // namespace
}  // namespace troupe::model
