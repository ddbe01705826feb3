// Hand-worked losses and gradients against finite differences in f64. Conventions: sums of
// log-probs over answer tokens, means over the rows of the whole step, h and g as in
// docs/algorithms.md, "Supervised and preference losses".
#include "tests/unit/runtime/learn/supervised/pairs_fixture.hpp"

namespace troupe::learn {
namespace {

using namespace test;

TEST(SupervisedLoss, AnswerLossIsTheMeanOverTheTokensOfTheWholeStep) {
  const auto settings = of_kind("sft");
  // 20 targets in the step, 7 of them here.
  const auto got =
      supervised_gradient(settings, two_pairs(), {.rows = 6, .first_tokens = 20}, kFirst, {});
  EXPECT_NEAR(got.loss, 8.0 / 20, 1e-15);
  EXPECT_NEAR(got.first[0], -1.0 / 20, 1e-15);
  EXPECT_NEAR(got.first[1], -1.0 / 20, 1e-15) << "a longer answer weighs by its tokens";
  EXPECT_EQ(got.figures.first_tokens, 7);
}

// 0.6 of the next-token loss and 0.4 of the divergence, over the 20 tokens of the whole step.
TEST(SupervisedLoss, DistillationMixesTheAnswerWithTheTeacher) {
  auto settings = of_kind("distill");
  settings.distill.coef = 0.4;
  const auto got = supervised_gradient(settings, two_pairs(), {.rows = 6, .first_tokens = 20},
                                       kFirst, {}, {1.5, 2.5});
  EXPECT_NEAR(got.loss, (0.6 * 8.0 + 0.4 * 4.0) / 20, 1e-15);
  EXPECT_NEAR(got.first[0], -0.6 / 20, 1e-15);
  const Metrics rows = row_metrics(settings, got.figures, 0);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].first, "policy/nll");
  EXPECT_NEAR(rows[0].second, 8.0 / 7, 1e-12) << "of the 7 tokens here";
  EXPECT_EQ(rows[1].first, "policy/divergence");
  EXPECT_NEAR(rows[1].second, 4.0 / 7, 1e-12);
}

TEST(SupervisedLoss, RewardLossComparesScoresLessTheMargin) {
  const auto settings = of_kind("rm");
  const auto got = supervised_gradient(settings, two_pairs(), {.rows = 2, .first_tokens = 7},
                                       {1.5, 0.5}, {1, 0});
  EXPECT_NEAR(got.loss, (softplus(-0.5) + softplus(0.2)) / 2, 1e-12);
  EXPECT_NEAR(got.first[1], -sigmoid(0.2) / 2, 1e-12) << "0.5 - 0 - 0.7 = -0.2";
  EXPECT_EQ(got.figures.correct, 2) << "the margin does not count for accuracy";
  expect_finite_differences(settings);
}

TEST(SupervisedLoss, DpoTakesSumsOverTokens) {
  const auto settings = of_kind("dpo");
  const auto got =
      supervised_gradient(settings, two_pairs(), {.rows = 2, .first_tokens = 7}, kFirst, kSecond);
  EXPECT_NEAR(got.loss, (softplus(-0.375) + softplus(0.75)) / 2, 1e-12);
  EXPECT_NEAR(got.first[0], -0.5 * sigmoid(-0.375) / 2, 1e-12);
  EXPECT_NEAR(got.second[0], 0.5 * sigmoid(-0.375) / 2, 1e-12);
  const Metrics rows = row_metrics(settings, got.figures, 0);
  EXPECT_EQ(rows[0].first, "rewards/chosen");
  EXPECT_NEAR(rows[0].second, 0, 1e-12);  // (0.25 - 0.25) / 2
  EXPECT_EQ(rows[1].first, "rewards/rejected");
  EXPECT_NEAR(rows[1].second, 0.1875, 1e-12);
  EXPECT_NEAR(rows[2].second, -0.1875, 1e-12);  // margins
  EXPECT_NEAR(rows[3].second, 0.5, 1e-12);      // accuracies
  expect_finite_differences(settings);
}

TEST(SupervisedLoss, LabelSmoothingGivesTheOtherOrderItsShare) {
  auto settings = of_kind("dpo");
  settings.dpo.label_smoothing = 0.1;
  const auto got =
      supervised_gradient(settings, two_pairs(), {.rows = 2, .first_tokens = 7}, kFirst, kSecond);
  const double first = 0.9 * softplus(-0.375) + 0.1 * softplus(0.375);
  const double second = 0.9 * softplus(0.75) + 0.1 * softplus(-0.75);
  EXPECT_NEAR(got.loss, (first + second) / 2, 1e-12);
  expect_finite_differences(settings);
}

TEST(SupervisedLoss, IpoIsTheSquareOfTheDistanceToItsTarget) {
  auto settings = of_kind("ipo");  // 1 / (2 b) = 1
  const StepTotals totals{.rows = 2, .first_tokens = 7};
  const auto sums = supervised_gradient(settings, two_pairs(), totals, kFirst, kSecond);
  EXPECT_NEAR(sums.loss, (0.0625 + 6.25) / 2, 1e-12);  // h = 0.75, -1.5
  expect_finite_differences(settings);
  settings.dpo.length_mean = true;
  const auto means = supervised_gradient(settings, two_pairs(), totals, kFirst, kSecond);
  const double a = 0.5 / 2 + 0.25 / 4 - 1, b = -0.5 / 5 - 1.0 / 1 - 1;
  EXPECT_NEAR(means.loss, (a * a + b * b) / 2, 1e-12);
  expect_finite_differences(settings);
}

// Of an answer that was cut to nothing the model says nothing: sum 0, mean 0.
TEST(SupervisedLoss, AnAnswerWithoutTokensGivesNumbers) {
  RowFacts facts = two_pairs();
  facts.second_tokens = {4, 0};
  facts.reference_second = {-4, 0};
  const Values second = {-4.25, 0};
  const StepTotals totals{.rows = 2, .first_tokens = 7};
  auto ipo = of_kind("ipo");
  ipo.dpo.length_mean = true;
  const auto means = supervised_gradient(ipo, facts, totals, kFirst, second);
  const double a = 0.5 / 2 + 0.25 / 4 - 1, b = -0.5 / 5 - 0.0 - 1;
  EXPECT_NEAR(means.loss, (a * a + b * b) / 2, 1e-12);
  EXPECT_NEAR(means.second[1], -b, 1e-12);
  for (const auto& [name, value] : row_metrics(ipo, means.figures, 0))
    EXPECT_TRUE(std::isfinite(value)) << name;
  // Both sides of one pair, and of all: h = 0.
  facts = {.first_tokens = {0},
           .second_tokens = {0},
           .reference_first = {0},
           .reference_second = {0},
           .margin = {0},
           .desirable = {1}};
  const StepTotals none{.rows = 1, .first_tokens = 0};
  EXPECT_NEAR(supervised_gradient(ipo, facts, none, {0}, {0}).loss, 1, 1e-12);  // (0 - 1 / (2 b))^2
  auto dpo = of_kind("dpo");
  dpo.nll_coef = 0.3;
  EXPECT_NEAR(supervised_gradient(dpo, facts, none, {0}, {0}).loss, std::log(2.0), 1e-12);
  EXPECT_NEAR(supervised_gradient(of_kind("rm"), facts, none, {0}, {0}).loss, std::log(2.0), 1e-12);
  EXPECT_NEAR(supervised_gradient(of_kind("kto"), facts, none, {0}, {}).loss, 0.5, 1e-12);
  EXPECT_EQ(supervised_gradient(of_kind("sft"), facts, none, {0}, {}).loss, 0);
}

TEST(SupervisedLoss, NllOnTheBetterAnswerIsPerToken) {
  auto settings = of_kind("dpo");
  const StepTotals totals{.rows = 2, .first_tokens = 7};
  const double without = supervised_gradient(settings, two_pairs(), totals, kFirst, kSecond).loss;
  settings.nll_coef = 0.3;
  const auto got = supervised_gradient(settings, two_pairs(), totals, kFirst, kSecond);
  EXPECT_NEAR(got.loss, without + 0.3 * 8.0 / 7, 1e-12);
  expect_finite_differences(settings);
}

TEST(SupervisedLoss, KtoWeighsGoodAndBadAnswersAroundZ) {
  auto settings = of_kind("kto");
  settings.kto.desirable_weight = 2;
  settings.kto.undesirable_weight = 3;
  const auto got = supervised_gradient(settings, two_pairs(),
                                       {.rows = 2, .first_tokens = 7, .z = 0.4}, kFirst, {});
  // g = 0.5 (good), -0.5 (bad)
  EXPECT_NEAR(got.loss, (2 * (1 - sigmoid(0.05)) + 3 * (1 - sigmoid(0.45))) / 2, 1e-12);
  EXPECT_LT(got.first[0], 0) << "a good answer becomes more likely";
  EXPECT_GT(got.first[1], 0) << "a bad one less";
  EXPECT_EQ(got.figures.correct, 2);
  expect_finite_differences(settings, 0.4);
}

void expect_parts_add_up(const LossSettings& settings) {
  const StepTotals totals{.rows = 2, .first_tokens = 7, .z = 0.2};
  const Values second = settings.method->pairs() ? kSecond : Values();
  const Values apart = settings.method->teacher ? Values{1.5, 2.5} : Values();
  const auto whole = supervised_gradient(settings, two_pairs(), totals, kFirst, second, apart);
  double loss = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const RowFacts all = two_pairs();
    const RowFacts one{{all.first_tokens[i]},     {all.second_tokens[i]}, {all.reference_first[i]},
                       {all.reference_second[i]}, {all.margin[i]},        {all.desirable[i]},
                       {all.matched[i]}};
    const Values b = second.empty() ? Values() : Values{second[i]};
    const Values c = apart.empty() ? Values() : Values{apart[i]};
    const auto part = supervised_gradient(settings, one, totals, {kFirst[i]}, b, c);
    loss += part.loss;
    EXPECT_NEAR(part.first[0], whole.first[i], 1e-15);
  }
  EXPECT_NEAR(loss, whole.loss, 1e-14);
}

TEST(SupervisedLoss, MicroBatchesAddUpToTheBigBatch) {
  for (const Method& method : Method::all()) {
    if (method.steps()) continue;  // choice_loss_test.cpp
    auto settings = of_kind(method);
    settings.nll_coef = method.pairs() && !method.scores ? 0.5 : 0;
    expect_parts_add_up(settings);
  }
  for (const PairLoss& loss : PairLoss::all()) {
    auto settings = of_kind("dpo");
    settings.pair_loss = loss;
    settings.dpo.label_smoothing = loss.smoothing == Smoothing::kNone ? 0 : 0.2;
    expect_parts_add_up(settings);
  }
}

}  // namespace
}  // namespace troupe::learn
