// Figures of an evaluation, worked out by hand.
#include "apps/session/eval_figures.hpp"

#include "apps/session/reward_flags.hpp"

#include <gtest/gtest.h>

namespace troupe::app {
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
}  // namespace troupe::app
