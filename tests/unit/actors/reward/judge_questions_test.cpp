// Which questions a judge gets, and the scores that follow from its answers, by hand.
#include "actors/reward/judge_questions.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>

namespace troupe::actors::reward {
namespace {

constexpr std::size_t kLabel = JudgeQuestion::kLabel;

RewardGroup group_of(std::size_t samples, std::string label = "right") {
  RewardGroup group{"p", std::move(label)};
  for (std::size_t i = 0; i < samples; ++i)
    group.samples.push_back({"r" + std::to_string(i)});
  return group;
}

Rubric of_kind(RubricKind kind, std::int64_t opponents = 0) {
  Rubric rubric;
  rubric.kind = kind;
  rubric.opponents = opponents;
  return rubric;
}

std::vector<JudgeOutcome> said(const std::vector<std::optional<double>>& values) {
  std::vector<JudgeOutcome> outcomes;
  for (const auto& value : values)
    outcomes.push_back({value, value ? "" : "mumbled", value ? 0 : 2});
  return outcomes;
}

double extra(const RewardScore& score, const char* name) {
  return nlohmann::json::parse(score.extra).value(name, -1.0);
}

TEST(JudgeQuestions, EachPairIsAskedInBothOrders) {
  const auto questions = judge_questions(of_kind(RubricKind::kPairwise), {group_of(4)});
  ASSERT_EQ(questions.size(), 12u);
  std::map<std::pair<std::size_t, std::size_t>, int> asked;
  for (const JudgeQuestion& one : questions)
    ++asked[{one.first, one.second}];
  EXPECT_EQ(asked.size(), 12u) << "each order of each of the 6 pairs once";
  const auto few = judge_questions(of_kind(RubricKind::kPairwise, 1), {group_of(4)});
  ASSERT_EQ(few.size(), 8u) << "0-1, 1-2, 2-3, 3-0";
  EXPECT_EQ(few[6].first, 3u);
  EXPECT_EQ(few[6].second, 0u);
  EXPECT_EQ(judge_questions(of_kind(RubricKind::kPairwise, 9), {group_of(3)}).size(), 6u);
  EXPECT_TRUE(judge_questions(of_kind(RubricKind::kPairwise), {group_of(1)}).empty());
}

TEST(JudgeQuestions, ScoresAreTheMeanOverBothOrdersAndAllOpponents) {
  const Rubric rubric = of_kind(RubricKind::kPairwise);
  const std::vector<RewardGroup> groups = {group_of(3)};
  const auto questions = judge_questions(rubric, groups);  // 0-1, 1-0, 1-2, 2-1, 2-0, 0-2
  // 0 beats 1 in both orders; the judge names the first of 1 and 2; of 2 and 0 neither.
  const auto scores = judge_scores(rubric, groups, questions, said({1, 0, 1, 1, 0.5, 0.5}));
  ASSERT_EQ(scores.size(), 3u);
  EXPECT_EQ(scores[0].value, 0.75);  // (1 + 0.5) / 2
  EXPECT_EQ(scores[1].value, 0.25);  // (0 + 0.5) / 2
  EXPECT_EQ(scores[2].value, 0.5);
  EXPECT_EQ(extra(scores[0], "judge_contradictions"), 0.0);
  EXPECT_EQ(extra(scores[1], "judge_contradictions"), 0.5);
  EXPECT_EQ(extra(scores[2], "judge_contradictions"), 0.5);
}

TEST(JudgeQuestions, AJudgeThatAlwaysNamesTheFirstGivesTies) {
  const Rubric rubric = of_kind(RubricKind::kPairwise);
  const std::vector<RewardGroup> groups = {group_of(4)};
  const auto questions = judge_questions(rubric, groups);
  const auto scores = judge_scores(rubric, groups, questions,
                                   said(std::vector<std::optional<double>>(questions.size(), 1)));
  for (const RewardScore& score : scores) {
    EXPECT_EQ(score.value, 0.5);
    EXPECT_EQ(extra(score, "judge_contradictions"), 1.0);
  }
}

TEST(JudgeQuestions, AMissingAnswerIsNeverAZero) {
  const Rubric rubric = of_kind(RubricKind::kPairwise);
  const std::vector<RewardGroup> groups = {group_of(3)};
  const auto questions = judge_questions(rubric, groups);
  // 0 against 1 is lost, for one of its orders did not parse.
  const auto scores = judge_scores(rubric, groups, questions, said({1, std::nullopt, 1, 0, 0, 1}));
  EXPECT_EQ(scores[0].value, 1.0) << "of 2 and 0 alone";
  EXPECT_EQ(scores[1].value, 1.0) << "of 1 and 2 alone";
  EXPECT_EQ(scores[2].value, 0.0) << "beaten twice";
  EXPECT_EQ(extra(scores[0], "judge_retries"), 2.0);
  const std::vector<RewardGroup> two = {group_of(2)};
  const auto lost =
      judge_scores(rubric, two, judge_questions(rubric, two), said({std::nullopt, 1}));
  EXPECT_FALSE(lost[0].value);
  EXPECT_EQ(lost[1].cause, "mumbled");
  const std::vector<RewardGroup> alone = {group_of(1)};
  const auto nobody = judge_scores(rubric, alone, {}, {});
  EXPECT_FALSE(nobody[0].value);
  EXPECT_EQ(nobody[0].cause, "the judge has nothing to compare it with");
}

TEST(JudgeQuestions, AReferenceIsTheRowsLabel) {
  const Rubric rubric = of_kind(RubricKind::kReference);
  const std::vector<RewardGroup> groups = {group_of(1), group_of(1, ""), group_of(2)};
  const auto questions = judge_questions(rubric, groups);
  ASSERT_EQ(questions.size(), 6u);
  EXPECT_EQ(texts_of(questions[0], groups[0]).first, "r0");
  EXPECT_EQ(texts_of(questions[0], groups[0]).second, "right");
  EXPECT_EQ(texts_of(questions[1], groups[0]).first, "right");
  EXPECT_EQ(questions[1].first, kLabel);
  const auto scores = judge_scores(rubric, groups, questions, said({1, 0, 0, 1, 1, 1}));
  ASSERT_EQ(scores.size(), 4u);
  EXPECT_EQ(scores[0].value, 1.0);
  EXPECT_FALSE(scores[1].value);
  EXPECT_NE(scores[1].cause.find("--data.label_key"), std::string::npos);
  EXPECT_EQ(scores[2].value, 0.0);
  EXPECT_EQ(scores[3].value, 0.5);
}

TEST(JudgeQuestions, PointsAreTheNumbers) {
  const Rubric rubric = of_kind(RubricKind::kPointwise);
  const std::vector<RewardGroup> groups = {group_of(2), group_of(1)};
  const auto scores =
      judge_scores(rubric, groups, judge_questions(rubric, groups), said({7, std::nullopt, 3}));
  EXPECT_EQ(scores[0].value, 7.0);
  EXPECT_FALSE(scores[1].value);
  EXPECT_EQ(scores[1].cause, "mumbled");
  EXPECT_EQ(scores[2].value, 3.0);
}

}  // namespace
}  // namespace troupe::actors::reward
