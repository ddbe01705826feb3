// The table of a sample's fields, and the facts of its tokens.
#include "runtime/experience/sample_fields.hpp"

#include <gtest/gtest.h>

namespace troupe::experience {
namespace {

Trajectory full_sample() {
  Trajectory sample;
  sample.tokens = {5, 6, 7};
  sample.behaviour = {-1, -2, -3};
  sample.versions = {4, 4, 5};
  sample.facts.log_kept_mass = {0, -0.5f, 0};
  sample.finish = FinishReason::kStop;
  sample.text = "abc";
  sample.reference = {-1, -1, -1};
  sample.teacher = {-2, -2, -2};
  sample.values = {0.5f, 0.25f, 0};
  sample.score = 1.5;
  sample.steps = {{1, 0.5}};
  sample.turns = {{0, {9}}, {2, {8}}};
  sample.episode = 2;
  sample.shares = Shares{0, 1};
  sample.feedback = 0.75;
  sample.feedback_steps = {{2, 0.25}};
  return sample;
}

}  // namespace

TEST(SampleFields, ThePolicyGetsWhatItLearnsFromAlone) {
  const Trajectory all = full_sample(), part = learned_part(all);
  EXPECT_EQ(part.tokens, all.tokens);
  EXPECT_EQ(part.behaviour, all.behaviour);
  EXPECT_EQ(part.versions, all.versions);
  EXPECT_EQ(part.finish, all.finish);
  EXPECT_EQ(part.reference, all.reference);
  EXPECT_EQ(part.teacher, all.teacher);
  EXPECT_EQ(part.values, all.values);
  EXPECT_EQ(part.score, all.score);
  EXPECT_EQ(part.steps, all.steps);
  EXPECT_EQ(part.turns, all.turns);
  EXPECT_EQ(part.episode, all.episode);
  EXPECT_EQ(part.shares, all.shares);
  EXPECT_EQ(part.text, "");
  EXPECT_EQ(part.feedback, std::nullopt);
  EXPECT_TRUE(part.feedback_steps.empty());
  EXPECT_TRUE(part.facts.empty());
}

// One field after the other is changed: those that a replayed log need not have make no difference.
TEST(SampleFields, AReplayedLogIsComparedByItsOwnFields) {
  std::size_t compared = 0, others = 0;
  std::apply(
      [&](const auto&... fields) {
        const auto one = [&](const auto& field) {
          Trajectory changed = full_sample();
          using Field = std::remove_cvref_t<decltype(field)>;
          changed.*field.member = typename Field::Member();
          const bool same = compares_equal(full_sample(), changed);
          EXPECT_EQ(same, (Field::kUses & kCompared) == 0) << field.log_name;
          ++(same ? others : compared);
        };
        (one(fields), ...);
      },
      kSampleFields);
  EXPECT_EQ(compared, 11u);
  EXPECT_EQ(others, 5u) << "finish, text, feedback, its steps, values";
}

TEST(SampleFields, WhatOtherRolesAddIsNotDelivered) {
  Trajectory sample = full_sample();
  sample.reference = sample.teacher = sample.values = {};
  sample.score.reset();
  sample.steps.clear();
  ASSERT_TRUE(check_delivered(sample));
  std::size_t refused = 0;
  each_sample_field<kAddedLater>([&](const auto& field) {
    Trajectory scored = sample;
    scored.*field.member = full_sample().*field.member;
    refused += check_delivered(scored) ? 0 : 1;
  });
  EXPECT_EQ(refused, 5u);
  sample.facts.log_kept_mass.pop_back();
  const auto wrong = check_delivered(sample);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("of 3 tokens with 2 of log_kept_mass"), std::string::npos)
      << wrong.error().message;
}

TEST(TokenFacts, ArePartedAndJoinedTokenByToken) {
  TokenFacts facts, none;
  facts.log_kept_mass = {-1, -2, -3};
  EXPECT_EQ(part_of(facts, 1, 3).log_kept_mass, (std::vector<float>{-2, -3}));
  EXPECT_TRUE(part_of(none, 1, 3).empty());
  EXPECT_EQ(facts.bytes(), 12u);

  TokenFacts joined;
  append(joined, 0, none, 0, 2);
  EXPECT_TRUE(joined.empty()) << "nobody asked for them";
  append(joined, 2, facts, 1, 2);
  EXPECT_EQ(joined.log_kept_mass, (std::vector<float>{0, 0, -2}));
  append(joined, 3, none, 0, 1);
  EXPECT_EQ(joined.log_kept_mass, (std::vector<float>{0, 0, -2, 0}));
}

}  // namespace troupe::experience
