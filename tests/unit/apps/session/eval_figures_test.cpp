// Figures of an evaluation, worked out by hand.
#include "apps/session/eval_figures.hpp"

#include "apps/session/reward_flags.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace troupe::session {
namespace {

std::vector<EvalProblem> two_problems() {
  EvalProblem first{
      "sums", {1, 0, 1, 0}, {"7", "8", "7", "9"}, {false, true, false, false}, {2, 4, 2, 4}, {}};
  EvalProblem second{
      "", {0, 0, 0, 0}, {"1", "1", "1", ""}, {false, false, false, false}, {1, 1, 1, 1}, {}};
  return {first, second};
}

double figure(const EvalSet& set, const std::string& name) {
  for (const EvalFigure& one : set.figures) {
    if (one.name == name) return one.value.mean;
  }
  ADD_FAILURE() << "no figure " << name;
  return -1;
}

TEST(EvalFigures, AllProblemsThenEachSource) {
  const auto sets = eval_figures(two_problems(), {1, 2, 4}, 0.5);
  ASSERT_TRUE(sets);
  ASSERT_EQ(sets->size(), 2u);
  const EvalSet& all = sets->front();
  EXPECT_EQ(all.problems, 2u);
  EXPECT_DOUBLE_EQ(figure(all, "pass@1"), 0.25);      // 1/2 and 0
  EXPECT_DOUBLE_EQ(figure(all, "pass@2"), 5.0 / 12);  // 1 - 1/6 and 0
  EXPECT_DOUBLE_EQ(figure(all, "pass@4"), 0.5);
  EXPECT_DOUBLE_EQ(figure(all, "maj@4"), 0.5);   // 7 wins: right; 1 wins: wrong
  EXPECT_DOUBLE_EQ(figure(all, "maj@2"), 0.25);  // ties: 1/2, 1/2; wrong
  EXPECT_DOUBLE_EQ(figure(all, "truncated_rate"), 0.125);
  EXPECT_DOUBLE_EQ(figure(all, "response_length"), 2.0);
  EXPECT_EQ((*sets)[1].name, "sums");
  EXPECT_DOUBLE_EQ(figure((*sets)[1], "pass@1"), 0.5);
}

TEST(EvalFigures, ASamplePassesAtTheScore) {
  EvalProblem problem{"", {0.4, 0.6}, {"a", "b"}, {false, false}, {1, 1}, {}};
  EXPECT_DOUBLE_EQ(figure(eval_figures({problem}, {1}, 0.5)->front(), "pass@1"), 0.5);
  EXPECT_DOUBLE_EQ(figure(eval_figures({problem}, {1}, 0.4)->front(), "pass@1"), 1.0);
  EXPECT_DOUBLE_EQ(figure(eval_figures({problem}, {1}, 0.5)->front(), "reward"), 0.5);
}

TEST(EvalFigures, ScoreAndLengthCorrelate) {
  // Scores 1 0 1 0 0 0 0 0 and lengths 2 4 2 4 1 1 1 1, worked out with deviations of 1/4 and 2.
  const EvalSet all = eval_figures(two_problems(), {1}, 0.5)->front();
  EXPECT_DOUBLE_EQ(figure(all, "length_pearson"), 0.0);
  EvalProblem longer{"", {1, 2, 3}, {"a", "b", "c"}, {false, false, false}, {10, 20, 90}, {}};
  const auto sets = eval_figures({longer}, {1}, 0.5);
  EXPECT_DOUBLE_EQ(figure(sets->front(), "length_spearman"), 1.0);
  // Deviations (-1, 0, 1) and (-30, -20, 50): 80 over the root of 2 * 3800.
  EXPECT_DOUBLE_EQ(figure(sets->front(), "length_pearson"), 80 / std::sqrt(2 * 3800.0));
  EvalProblem flat{"", {1, 1}, {"a", "b"}, {false, false}, {10, 20}, {}};
  const auto constant = eval_figures({flat}, {1}, 0.5);
  for (const EvalFigure& one : constant->front().figures)
    EXPECT_NE(one.name, "length_pearson") << "of a constant there is none";
}

TEST(EvalFigures, EachNamedSetHasItsOwn) {
  std::vector<EvalProblem> problems = two_problems();
  problems[1].set = "chat";
  problems[1].source = "easy";
  const auto metrics = evaluation_metrics(problems, 0.5);
  ASSERT_TRUE(metrics);
  std::map<std::string, double> by_name(metrics->begin(), metrics->end());
  EXPECT_DOUBLE_EQ(by_name.at("eval/pass@1"), 0.5) << "of the set without a name alone";
  EXPECT_DOUBLE_EQ(by_name.at("eval/sums/pass@1"), 0.5);
  EXPECT_DOUBLE_EQ(by_name.at("eval/chat/pass@1"), 0.0);
  EXPECT_DOUBLE_EQ(by_name.at("eval/chat/response_length"), 1.0);
  EXPECT_DOUBLE_EQ(by_name.at("eval/chat/easy/pass@1"), 0.0);
  EXPECT_FALSE(by_name.contains("eval/easy/pass@1"));
}

// Names of sets are the configuration's, those of sources come with the rows.
TEST(EvalFigures, ASourceTakesNoSetsPlace) {
  std::vector<EvalProblem> problems = two_problems();
  problems[0].source = "chat";  // of the set without a name; its pass@1 is 1/2
  problems.push_back(problems[0]);
  problems[1].set = "chat";  // 0
  problems[1].source = "easy";
  problems[2].source = "chat/easy";  // 1/2
  const auto metrics = evaluation_metrics(problems, 0.5);
  ASSERT_TRUE(metrics);
  std::map<std::string, double> by_name;
  for (const auto& [name, value] : *metrics)
    EXPECT_TRUE(by_name.emplace(name, value).second) << name << " twice";
  EXPECT_DOUBLE_EQ(by_name.at("eval/chat/pass@1"), 0.0);
  EXPECT_DOUBLE_EQ(by_name.at("eval/chat-2/pass@1"), 0.5);
  EXPECT_EQ(by_name.contains("eval/chat/easy/pass@1"), true);
  EXPECT_EQ(by_name.contains("eval/chat/easy-2/pass@1"), true);
}

TEST(EvalFigures, RefuseMoreThanThereIs) {
  EXPECT_FALSE(eval_figures(two_problems(), {5}, 0.5));
  EXPECT_FALSE(eval_figures({EvalProblem{}}, {1}, 0.5));
}

TEST(AnswerOf, IsWhatTheRuleCompares) {
  EXPECT_EQ(answer_of("exact", "", "\n 11 \n7"), "11");
  EXPECT_EQ(answer_of("last_number", "", "so 3 + 4 = 7.0!"), "7");
  EXPECT_EQ(answer_of("last_number", "", "none"), "");
  EXPECT_EQ(answer_of("regex", "x=(\\d+)", "x=12, x=13"), "12");
  EXPECT_EQ(answer_of("regex", "x=(\\d+)", "y"), "");
  EXPECT_EQ(answer_of("", "", " text \n"), "text");
}

}  // namespace
}  // namespace troupe::session
