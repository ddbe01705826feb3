// The loss of a process reward model on values worked out by hand, and its derivatives.
#include "runtime/learn/supervised/choice_loss.hpp"

#include "runtime/learn/torch/tensors.hpp"

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>

namespace troupe::learn {
namespace {

struct Case {
  std::vector<std::int32_t> labels;
  std::vector<float> shares;
  data::SupervisedRow row() const {
    data::SupervisedRow row;
    row.labels = labels;
    row.shares = shares;
    return row;
  }
};

LossSettings among(std::vector<std::int32_t> tokens) {
  LossSettings settings;
  settings.method = "prm";
  settings.reward_tokens = std::move(tokens);
  return settings;
}

struct Result {
  double loss = 0;
  std::vector<double> gradient;
  RowFigures figures;
};

Result loss_of(const LossSettings& settings,
               const std::vector<Case>& cases,
               const std::vector<double>& logprobs,
               double places) {
  std::vector<data::SupervisedRow> rows;
  for (const Case& one : cases)
    rows.push_back(one.row());
  StepTotals totals;
  totals.first_tokens = places;
  totals.choices = choices_of(settings, rows);
  const c10::AutoGradMode with_grad(true);
  auto values = tensor_of(logprobs).requires_grad_(true);
  Result result;
  const auto loss =
      choice_loss(settings, wanted_choices(rows, totals.choices), totals, values, result.figures);
  loss.backward();
  result.loss = loss.item<double>();
  result.gradient = values_of(values.grad());
  return result;
}

const double kHalf = std::log(0.5), kTenth = std::log(0.1), kFifth = std::log(0.2);

// p(7) : p(3) is 0.5 : 0.1, so 5/6 and 1/6 among the two.
TEST(ChoiceLoss, HardLabelsAreLearnedAmongTheRewardTokens) {
  const auto got = loss_of(among({7, 3}), {{{7, 3}, {}}}, {kHalf, kTenth, kHalf, kTenth}, 2);
  EXPECT_NEAR(got.loss, -(std::log(5.0 / 6) + std::log(1.0 / 6)) / 2, 1e-12);
  // (softmax - wanted) / 2
  const std::vector<double> wanted = {-1.0 / 12, 1.0 / 12, 5.0 / 12, -5.0 / 12};
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(got.gradient[i], wanted[i], 1e-12) << i;
  EXPECT_EQ(got.figures.rows, 2);
  EXPECT_EQ(got.figures.correct, 1);
  EXPECT_NEAR(got.figures.chosen, 5.0 / 6, 1e-12);
  EXPECT_NEAR(got.figures.rejected, 5.0 / 6, 1e-12);
}

TEST(ChoiceLoss, SoftLabelsAreAPairOfProbabilities) {
  const auto got = loss_of(among({7, 3}), {{{}, {0.25f}}}, {kHalf, kTenth}, 1);
  EXPECT_NEAR(got.loss, -0.25 * std::log(5.0 / 6) - 0.75 * std::log(1.0 / 6), 1e-12);
  EXPECT_NEAR(got.gradient[0], 5.0 / 6 - 0.25, 1e-12);
  EXPECT_NEAR(got.gradient[1], 1.0 / 6 - 0.75, 1e-12);
  EXPECT_EQ(got.figures.correct, 0) << "3 is wanted, 7 is likelier";
}

// A soft label of 1 or 0 is a hard one.
TEST(ChoiceLoss, CertainSoftLabelsAreHardLabels) {
  const std::vector<double> logprobs = {kHalf, kTenth, kFifth, kHalf};
  const auto hard = loss_of(among({7, 3}), {{{7, 3}, {}}}, logprobs, 2);
  const auto soft = loss_of(among({7, 3}), {{{}, {1, 0}}}, logprobs, 2);
  EXPECT_EQ(hard.loss, soft.loss);
  EXPECT_EQ(hard.gradient, soft.gradient);
}

// Without reward tokens the loss is the label's own log-prob of the whole vocabulary; the choices
// are the labels of the step, in ascending order.
TEST(ChoiceLoss, WithoutRewardTokensTheWholeVocabularyIsTheChoice) {
  const auto got = loss_of(among({}), {{{9}, {}}, {{4}, {}}}, {kTenth, kHalf, kTenth, kFifth}, 2);
  EXPECT_NEAR(got.loss, -(kHalf + kTenth) / 2, 1e-12);
  EXPECT_EQ(got.gradient, (std::vector<double>{0, -0.5, -0.5, 0}));
  EXPECT_EQ(got.figures.correct, 1);
  EXPECT_EQ(got.figures.chosen_rows + got.figures.rejected_rows, 0);
}

TEST(ChoiceLoss, MicroBatchesAddUpToTheStep) {
  const std::vector<double> first = {kHalf, kTenth}, second = {kFifth, kHalf};
  const auto whole =
      loss_of(among({7, 3}), {{{7, 7}, {}}}, {first[0], first[1], second[0], second[1]}, 2);
  const auto a = loss_of(among({7, 3}), {{{7}, {}}}, first, 2),
             b = loss_of(among({7, 3}), {{{7}, {}}}, second, 2);
  EXPECT_NEAR(whole.loss, a.loss + b.loss, 1e-15);
}

TEST(ChoiceLoss, MetricsAreByStep) {
  const auto got = loss_of(among({7, 3}), {{{7, 3}, {}}}, {kHalf, kTenth, kFifth, kHalf}, 2);
  const Metrics metrics = row_metrics(among({7, 3}), got.figures, 0);
  ASSERT_EQ(metrics.size(), 4u);
  EXPECT_EQ(metrics[0].first, "rewards/chosen");
  EXPECT_NEAR(metrics[0].second, 5.0 / 6, 1e-12);
  EXPECT_EQ(metrics[1].first, "rewards/rejected");
  EXPECT_NEAR(metrics[1].second, 2.0 / 7, 1e-12);
  EXPECT_EQ(metrics[3].first, "rewards/accuracies");
  EXPECT_EQ(metrics[3].second, 1);
}

}  // namespace
}  // namespace troupe::learn
