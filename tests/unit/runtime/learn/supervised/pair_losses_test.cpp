// The losses of a pair, and those of the methods without a reference, on values worked out by hand
// and against finite differences. Figures of the two pairs: pairs_fixture.hpp.
#include "runtime/learn/supervised/row_checks.hpp"
#include "runtime/learn/supervised/step_wide.hpp"
#include "tests/unit/runtime/learn/supervised/pairs_fixture.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <fstream>
#include <limits>
#include <map>
#include <string_view>

namespace troupe::learn {
namespace {

using namespace test;

// beta (l - l_ref) of the two pairs, beta = 0.5; their differences are 0.375 and -0.75.
constexpr double kC[] = {0.25, -0.25}, kR[] = {-0.125, 0.5}, kH[] = {0.375, -0.75};

LossSettings of_loss(std::string_view name, double smoothing = 0) {
  LossSettings settings = of_kind("dpo");
  settings.pair_loss = name;
  settings.dpo.label_smoothing = smoothing;
  return settings;
}

double loss_of(const LossSettings& settings) {
  const StepTotals totals{.rows = 2, .first_tokens = 7};
  return supervised_gradient(settings, two_pairs(), totals, kFirst, kSecond).loss;
}

double square(double x) {
  return x * x;
}

template <class Of>
double mean_of_rows(Of of) {
  return (of(0) + of(1)) / 2;
}

// softplus(x) is -log s(-x).
TEST(PairLosses, EachHasHandWorkedValues) {
  struct Worked {
    double smoothing = 0, loss = 0;
  };
  const double e = 0.1, tau = 0.05;
  const std::map<std::string_view, Worked> worked = {
      {"sigmoid", {0, mean_of_rows([](int i) { return softplus(-kH[i]); })}},
      {"hinge", {0, (0.625 + 1.75) / 2}},
      {"ipo", {0, (square(0.75 - 1) + square(-1.5 - 1)) / 2}},
      {"robust", {e, mean_of_rows([&](int i) {
                    return (0.9 * softplus(-kH[i]) - 0.1 * softplus(kH[i])) / 0.8;
                  })}},
      {"exo_pair", {e, mean_of_rows([&](int i) {
                      const double q = sigmoid(kH[i]);
                      return q * std::log(q / 0.9) + (1 - q) * std::log((1 - q) / 0.1);
                    })}},
      {"nca_pair", {0, mean_of_rows([](int i) {
                      return softplus(-kC[i]) + 0.5 * softplus(kC[i]) + 0.5 * softplus(kR[i]);
                    })}},
      // g = 0.5 and -0.25, -0.5 and 1, towards 1 and -1.
      {"sppo_hard",
       {0, (square(0.5 - 1) + square(-0.25 + 1) + square(-0.5 - 1) + square(1 + 1)) / 2}},
      // Log-ratios of the model 1.75 and -4.5, matched with 3 and 1.
      {"aot",
       {e, (0.9 * softplus(0.625) + 0.1 * softplus(-0.625) + 0.9 * softplus(2.75) +
            0.1 * softplus(-2.75)) /
               2}},
      {"apo_zero", {0, mean_of_rows([](int i) { return 1 - sigmoid(kC[i]) + sigmoid(kR[i]); })}},
      {"apo_down", {0, mean_of_rows([](int i) { return sigmoid(kC[i]) + 1 - sigmoid(kH[i]); })}},
      {"discopop", {0, mean_of_rows([&](int i) {
                      const double share = sigmoid(kH[i] / tau);
                      return (1 - share) * softplus(-kH[i]) + share * std::exp(-kH[i]);
                    })}},
  };
  for (const PairLoss& row : PairLoss::all()) {
    SCOPED_TRACE(row.name);
    const auto found = worked.find(row.name);
    ASSERT_NE(found, worked.end()) << row.name << " needs hand-worked values here";
    const LossSettings settings = of_loss(row.name, found->second.smoothing);
    EXPECT_EQ(refusal(settings), std::nullopt);
    EXPECT_NEAR(loss_of(settings), found->second.loss, 1e-12);
    expect_finite_differences(settings);
  }
}

TEST(PairLosses, IpoAndCdpoArePresetsOfTheTable) {
  EXPECT_EQ(loss_of(of_kind("ipo")), loss_of(of_loss("ipo")));
  LossSettings cdpo = of_kind("cdpo");
  cdpo.dpo.label_smoothing = 0.2;
  EXPECT_EQ(loss_of(cdpo), loss_of(of_loss("sigmoid", 0.2)));
  EXPECT_EQ(of_kind("dpo").pair_row()->name, "sigmoid");
  EXPECT_EQ(of_kind("kto").pair_row(), nullptr);
}

TEST(PairLosses, WhatALossDoesNotReadIsRefused) {
  const auto why = [](LossSettings settings) {
    const auto refused = refusal(settings);
    if (!refused) return std::string("accepted");
    return refused->key + ": " + refused->why +
           (refused->advice.empty() ? "" : "; " + refused->advice);
  };
  EXPECT_EQ(
      why(of_loss("robust")),
      "dpo.label_smoothing: the loss robust needs the share of wrong labels; give it, above 0 "
      "and below 0.5");
  EXPECT_EQ(why(of_loss("exo_pair")).find("dpo.label_smoothing: the loss exo_pair needs"), 0u);
  EXPECT_EQ(why(of_loss("hinge", 0.1)),
            "dpo.label_smoothing: the loss hinge smooths no labels; give 0, or --dpo.loss sigmoid, "
            "robust, exo_pair or aot");
  LossSettings means = of_loss("nca_pair");
  means.dpo.length_mean = true;
  EXPECT_EQ(why(means),
            "dpo.length_mean: the loss nca_pair is one of sums; give false, or --dpo.loss "
            "sigmoid or ipo");
  SupervisedSettings settings;
  settings.loss = of_loss("robust");
  EXPECT_EQ(check_settings(settings).error().code, core::ErrorCode::kConfig);
  settings.loss.dpo.label_smoothing = 0.1;
  EXPECT_TRUE(check_settings(settings));
}

TEST(PairLosses, SigmoidOfMeansIsTrlsSigmoidNorm) {
  LossSettings settings = of_loss("sigmoid");
  settings.dpo.length_mean = true;
  // g / tokens: 0.5 / 2 and -0.25 / 4; -0.5 / 5 and 1 / 1.
  EXPECT_NEAR(loss_of(settings), (softplus(-0.5 * 0.3125) + softplus(0.5 * 1.1)) / 2, 1e-12);
  expect_finite_differences(settings);
}

// Of the second pair the log-ratio -4.5 is the smaller of the model's two, and 1 of the
// reference's.
TEST(StepWide, RatiosAreMatchedByRank) {
  RowFacts facts = two_pairs();
  facts.reference_second = {-4, -8};
  EXPECT_EQ(matched_ratios(facts, kFirst, kSecond), (Values{3, 1}));
  RowFacts four;
  four.first_tokens = {1, 1, 1, 1};
  four.reference_first = {0, -1, -2, -3};
  four.reference_second = {0, 0, 0, 0};
  EXPECT_EQ(matched_ratios(four, Values{5, 1, 5, -7}, Values{0, 0, 0, 0}), (Values{-1, -2, 0, -3}))
      << "equal values in the order of the rows";
}

TEST(StepWide, RewardsSoFarComeBackToTheBit) {
  const troupe::test::TempFolder folder;
  RunningMoments moments;
  for (const double reward : {0.1, -2.7, 1e-9, 0.3})
    moments.add(reward);
  ASSERT_TRUE(save_rewards(folder.path(), moments));
  const auto back = load_rewards(folder.path());
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->count, 4u);
  EXPECT_EQ(back->mean, moments.mean);
  EXPECT_EQ(back->squares, moments.squares);
  EXPECT_EQ(load_rewards(folder.path() / "none").error().code, core::ErrorCode::kNotFound);
  std::ofstream(folder.path() / "reward_moments.json") << "{\"format\": 1, \"rewards\": 3}";
  EXPECT_NE(load_rewards(folder.path()).error().message.find("needs a number 'reward_mean'"),
            std::string::npos);
}

TEST(ReferenceFree, OrpoAddsTheOddsToTheNextTokenLoss) {
  const LossSettings settings = of_kind("orpo");  // means: -1.25 and -1.0625, -1.1 and -1
  const auto log_odds = [](double l) { return l - std::log(1 - std::exp(l)); };
  const double first = log_odds(-1.25) - log_odds(-1.0625), second = log_odds(-1.1) - log_odds(-1);
  EXPECT_NEAR(loss_of(settings), 8.0 / 7 + 0.5 * (softplus(-first) + softplus(-second)) / 2, 1e-12);
  expect_finite_differences(settings);
  EXPECT_EQ(settings.beta, 0.5);
  const auto rows = row_metrics(
      settings,
      supervised_gradient(settings, two_pairs(), {.rows = 2, .first_tokens = 7}, kFirst, kSecond)
          .figures,
      0);
  EXPECT_EQ(rows.front().first, "rewards/chosen");
  EXPECT_NEAR(rows.front().second, 0.5 * (-1.25 - 1.1) / 2, 1e-12);
  EXPECT_EQ(rows.back().first, "policy/nll");
}

// A probability of 1, and an answer without tokens, have no finite odds.
TEST(ReferenceFree, OrpoStaysFiniteWhereAnAnswerIsCertain) {
  const LossSettings settings = of_kind("orpo");
  RowFacts facts = two_pairs();
  facts.second_tokens = {4, 0};
  const auto got =
      supervised_gradient(settings, facts, {.rows = 2, .first_tokens = 7}, {0, -5.5}, {-4.25, 0});
  EXPECT_TRUE(std::isfinite(got.loss));
  for (const double slope : {got.first[0], got.first[1], got.second[0], got.second[1]})
    EXPECT_TRUE(std::isfinite(slope));
}

TEST(ReferenceFree, SimpoComparesMeansWithAMargin) {
  LossSettings settings = of_kind("simpo");
  settings.simpo.gamma = 0.3;
  EXPECT_NEAR(loss_of(settings),
              (softplus(-(0.5 * (-1.25 + 1.0625) - 0.3)) + softplus(-(0.5 * (-1.1 + 1) - 0.3))) / 2,
              1e-12);
  expect_finite_differences(settings);
  settings.nll_coef = 0.2;
  expect_finite_differences(settings);
}

TEST(ReferenceFree, CpoComparesSumsAndLearnsTheBetterAnswer) {
  LossSettings settings = of_kind("cpo");
  settings.nll_coef = 1;
  EXPECT_NEAR(loss_of(settings), (softplus(-0.5 * 1.75) + softplus(0.5 * 4.5)) / 2 + 8.0 / 7,
              1e-12);
  expect_finite_differences(settings);
}

TEST(Bco, ClassifiesRewardsAroundTheirMean) {
  const LossSettings settings = of_kind("bco");
  const StepTotals totals{.rows = 2, .first_tokens = 7, .z = 0.4};
  const auto got = supervised_gradient(settings, two_pairs(), totals, kFirst, {});
  // beta g = 0.25 (good) and -0.25 (bad), delta = 0.2.
  EXPECT_NEAR(got.loss, (softplus(-0.05) + softplus(-0.45)) / 2, 1e-12);
  EXPECT_EQ(got.figures.correct, 2);
  expect_finite_differences(settings, 0.4);
  const auto rows = row_metrics(settings, got.figures, 0.4);
  EXPECT_EQ(rows.back().first, "rewards/delta");
  EXPECT_NEAR(rows.back().second, 0.2, 1e-15);
}

}  // namespace
}  // namespace troupe::learn
