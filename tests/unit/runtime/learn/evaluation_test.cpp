// Estimators and bootstraps on cases whose answer is known.
#include "runtime/learn/evaluation.hpp"

#include "runtime/core/rng.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::learn {

TEST(PairedBootstrap, EqualDifferencesGiveAPoint) {
  const auto interval = paired_bootstrap({0, 0.25, 0.5}, {0.25, 0.5, 0.75}, 1000, 1);
  ASSERT_TRUE(interval);
  EXPECT_DOUBLE_EQ(interval->mean, 0.25);
  EXPECT_DOUBLE_EQ(interval->low, 0.25);
  EXPECT_DOUBLE_EQ(interval->high, 0.25);
}

TEST(PairedBootstrap, WidthFollowsTheNormalTheory) {
  core::Rng rng(3);
  std::vector<double> before(400, 0.0), after(400);
  double sum = 0, squares = 0;
  for (double& value : after) {
    value = 0.3 + rng.next_normal();
    sum += value;
    squares += value * value;
  }
  const double mean = sum / 400, error = std::sqrt((squares / 400 - mean * mean) / 400);
  const auto interval = paired_bootstrap(before, after, 10000, 2);
  EXPECT_NEAR(interval->low, mean - 1.96 * error, 0.1 * error);
  EXPECT_NEAR(interval->high, mean + 1.96 * error, 0.1 * error);
}

TEST(PairedBootstrap, RefusesUnpairedInput) {
  EXPECT_FALSE(paired_bootstrap({0, 1}, {0}, 1000, 1));
  EXPECT_FALSE(paired_bootstrap({0}, {0}, 1000, 1));
}

TEST(PassAtK, IsTheShareOfDrawsWithASuccess) {
  // 5 samples, 2 right: of the 10 pairs only 3 hold no right one.
  EXPECT_DOUBLE_EQ(pass_at_k(5, 2, 1), 0.4);
  EXPECT_DOUBLE_EQ(pass_at_k(5, 2, 2), 0.7);
  EXPECT_DOUBLE_EQ(pass_at_k(5, 2, 3), 0.9);  // one of ten triples
  EXPECT_EQ(pass_at_k(5, 2, 4), 1.0);
  EXPECT_EQ(pass_at_k(5, 0, 5), 0.0);
  EXPECT_EQ(pass_at_k(5, 5, 1), 1.0);
}

TEST(PassAtK, StaysExactWhereBinomialsOverflow) {
  // 1 - C(999, 500) / C(1000, 500) = 1/2.
  EXPECT_NEAR(pass_at_k(1000, 1, 500), 0.5, 1e-12);
}

TEST(MajorityAtK, TakesTheAnswerWithMostVotes) {
  const std::vector<std::string> answers = {"7", "8", "7", "8", "8", "9"};
  const std::vector<double> scores = {1, 0, 1, 0, 0, 0};
  EXPECT_EQ(majority_at_k(answers, scores, 3), 0.5);  // {7, 8, 7}: right; {8, 8, 9}: wrong
  EXPECT_DOUBLE_EQ(majority_at_k(answers, scores, 1), 2.0 / 6);
  EXPECT_EQ(majority_at_k(answers, scores, 6), 0.0);
  EXPECT_DOUBLE_EQ(majority_at_k(answers, scores, 5), 0.0);  // the sixth is left over
}

TEST(MajorityAtK, TiesShare) {
  const std::vector<std::string> answers = {"7", "8", "9", "7", "8"};
  const std::vector<double> scores = {1, 0, 0, 1, 0};
  EXPECT_DOUBLE_EQ(majority_at_k(answers, scores, 5), 0.5);
}

TEST(MajorityAtK, NoAnswerIsAVoteForNothing) {
  const std::vector<std::string> answers = {"", "", "7"};
  const std::vector<double> scores = {1, 1, 1};
  EXPECT_EQ(majority_at_k(answers, scores, 3), 0.0);
}

TEST(BootstrapMean, OneProblemIsAPoint) {
  const auto interval = bootstrap_mean({0.25}, 1000, 1);
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->low, 0.25);
  EXPECT_EQ(interval->high, 0.25);
  EXPECT_FALSE(bootstrap_mean({}, 1000, 1));
}

}  // namespace troupe::learn
