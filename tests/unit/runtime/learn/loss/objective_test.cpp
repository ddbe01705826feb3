// Hand-worked losses, the side of each clip, and gradients against finite differences in f64.
// Conventions: docs/algorithms.md, "Policy objectives".
#include "runtime/learn/loss/objective.hpp"

#include "runtime/core/rng.hpp"
#include "tests/unit/runtime/learn/loss_gradients.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string_view>

namespace troupe::learn {
namespace {

using Values = std::vector<double>;

AlgoSettings settings(Chosen<Objective> objective) {
  AlgoSettings algo;
  algo.objective = objective;
  algo.eps_clip_low_high = {0.2, 0.3};
  algo.correction_max = 2.0;
  return algo;
}

double token_weight(Chosen<Reducer> reducer,
                    double mini_batches,
                    double tokens,
                    double samples,
                    double sample_tokens,
                    double constant = 1) {
  return reducer->weight({mini_batches, tokens, samples}, sample_tokens, constant);
}

// One token of weight 1 with pi/pi_p = ratio, pi_p/mu = rho.
LossGradient one_token(const AlgoSettings& algo, double advantage, double ratio, double rho = 1) {
  TokenBatch batch;
  batch.advantage = {advantage};
  batch.weight = {1};
  batch.anchor = {-1};
  batch.behaviour = {-1 - std::log(rho)};
  return loss_and_gradient(algo, batch, Values{-1 + std::log(ratio)}, {});
}

void expect_loss(const LossGradient& got, double loss, double gradient) {
  EXPECT_NEAR(got.loss, loss, 1e-12);
  EXPECT_NEAR(got.logprobs[0], gradient, 1e-12);
}

// Central differences of the loss in every log-prob and entropy.
void expect_finite_differences(const AlgoSettings& algo,
                               const TokenBatch& batch,
                               const Values& l,
                               const Values& h) {
  const auto got = loss_and_gradient(algo, batch, l, h);
  const double step = 1e-6;
  for (std::size_t i = 0; i < l.size(); ++i) {
    Values up = l, down = l;
    up[i] += step;
    down[i] -= step;
    // Terms under sg() must not move with the step: rho and the KL weight come from the anchor.
    const double slope = (loss_and_gradient(algo, batch, up, h).loss -
                          loss_and_gradient(algo, batch, down, h).loss) /
                         (2 * step);
    EXPECT_NEAR(got.logprobs[i], slope, 1e-8) << "token " << i;
    if (h.empty()) continue;
    Values high = h, low = h;
    high[i] += step;
    low[i] -= step;
    const double entropy_slope = (loss_and_gradient(algo, batch, l, high).loss -
                                  loss_and_gradient(algo, batch, l, low).loss) /
                                 (2 * step);
    EXPECT_NEAR(got.entropy[i], entropy_slope, 1e-8) << "entropy " << i;
  }
}

// Tokens on all sides of the clip, away from its edges, with behaviour equal to the anchor.
TokenBatch mixed_batch(Values* logprobs) {
  const Values ratios = {0.5, 0.9, 1.05, 1.6, 0.5, 0.9, 1.05, 1.6};
  core::Rng rng(5);
  TokenBatch batch;
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    batch.advantage.push_back(i < 4 ? 1.5 : -0.7);
    batch.weight.push_back(0.05 + 0.1 * rng.next_uniform());
    batch.anchor.push_back(-2 * rng.next_uniform());
    batch.behaviour.push_back(batch.anchor.back() + 0.3 * rng.next_normal());
    batch.reference.push_back(batch.anchor.back() + 0.4 * rng.next_normal());
    logprobs->push_back(batch.anchor.back() + std::log(ratios[i]));
  }
  return batch;
}

}  // namespace

TEST(PpoObjective, InsideTheClipTheGradientIsTheRatioTimesTheAdvantage) {
  const auto algo = settings("ppo");
  expect_loss(one_token(algo, 2.0, 1.1), -2.2, -2.2);
  expect_loss(one_token(algo, -2.0, 1.1), 2.2, 2.2);
  expect_loss(one_token(algo, 2.0, 0.9), -1.8, -1.8);
}

TEST(PpoObjective, PositiveAdvantageIsClippedAboveOnly) {
  const auto algo = settings("ppo");
  expect_loss(one_token(algo, 2.0, 1.5), -2.6, 0.0);   // 1 + e_high = 1.3
  expect_loss(one_token(algo, 2.0, 0.5), -1.0, -1.0);  // below: the gradient still flows
}

TEST(PpoObjective, NegativeAdvantageIsClippedBelowOnly) {
  const auto algo = settings("ppo");
  expect_loss(one_token(algo, -2.0, 0.5), 1.6, 0.0);  // 1 - e_low = 0.8
  expect_loss(one_token(algo, -2.0, 1.5), 3.0, 3.0);  // above: the gradient still flows
}

TEST(PpoObjective, BehaviourPlaysNoPart) {
  const auto algo = settings("ppo");
  expect_loss(one_token(algo, 2.0, 1.1, 3.0), -2.2, -2.2);
}

TEST(PpoObjective, LogRatioIsClampedBeforeTheExponential) {
  // r = exp(20), not exp(30), and no gradient beyond the clamp.
  const auto got = one_token(settings("ppo"), -1.0, std::exp(30.0));
  EXPECT_NEAR(got.loss / std::exp(20.0), 1.0, 1e-12);
  EXPECT_EQ(got.logprobs[0], 0.0);
}

TEST(DecoupledObjective, WeighsByTheCorrectionUpToItsCap) {
  const auto algo = settings("decoupled");
  expect_loss(one_token(algo, 2.0, 1.1, 0.5), -1.1, -1.1);
  expect_loss(one_token(algo, 2.0, 1.1, 1.5), -3.3, -3.3);
  expect_loss(one_token(algo, 2.0, 1.1, 8.0), -4.4, -4.4);  // C = 2
  expect_loss(one_token(algo, 2.0, 1.5, 1.5), -3.9, 0.0);   // clipped, weight 1.5
}

TEST(DecoupledObjective, WithoutAnAnchorTheRatioIsOneAndRhoIsDetached) {
  // rho 1.5: -(1.5 * 1 * 2). rho 8, cut to 2: were rho not detached, there would be no gradient.
  for (const auto& [rho, weight] : {std::pair{1.5, 1.5}, std::pair{8.0, 2.0}}) {
    TokenBatch batch;
    batch.advantage = {2};
    batch.weight = {1};
    batch.behaviour = {-1 - std::log(rho)};
    const auto got = loss_and_gradient(settings("decoupled"), batch, Values{-1}, {});
    expect_loss(got, -2 * weight, -2 * weight);
  }
}

TEST(PpoObjective, DualClipBoundsTheLossOfNegativeAdvantages) {
  auto algo = settings("ppo");
  algo.dual_clip = 3;
  expect_loss(one_token(algo, -2.0, 2.5), 5.0, 5.0);  // below c: as without
  expect_loss(one_token(algo, -2.0, 8.0), 6.0, 0.0);  // c |A|, no gradient
  expect_loss(one_token(algo, 2.0, 8.0), -2.6, 0.0);  // a positive one is clipped as ever
  expect_loss(one_token(algo, 2.0, 0.5), -1.0, -1.0);
}

TEST(BypassObjective, TakesTheRatioToTheBehaviour) {
  // pi/mu = 1.1 * 1.1 = 1.21 inside the clip; 1.1 * 1.5 above it.
  const auto algo = settings("bypass");
  expect_loss(one_token(algo, 2.0, 1.1, 1.1), -2.42, -2.42);
  expect_loss(one_token(algo, 2.0, 1.1, 1.5), -2.6, 0.0);
}

TEST(A3poObjective, InterpolatesTheAnchorWithoutAGradient) {
  // l_mu = -1, l = -1 + log 4, a = 1/2: l_p = -1 + log 2, r = 2, rho = 2 (C = 2).
  TokenBatch batch;
  batch.advantage = {-1};
  batch.weight = {1};
  batch.behaviour = {-1};
  batch.anchor_share = {0.5};
  const auto algo = settings("a3po");
  expect_loss(loss_and_gradient(algo, batch, Values{-1 + std::log(4.0)}, {}), 4, 4);
}

TEST(GspoObjective, HasOneRatioASample) {
  // Log-ratios log 1.21 and 0: the sample's ratio is 1.1 for both tokens; the other's is 0.5.
  auto algo = settings("gspo");
  TokenBatch batch;
  batch.advantage = {2, 2, -1};
  batch.weight = {0.25, 0.25, 0.5};
  batch.anchor = batch.behaviour = {-1, -1, -1};
  batch.sample_ends = {2, 3};
  const Values l = {-1 + std::log(1.21), -1, -1 + std::log(0.5)};
  const auto got = loss_and_gradient(algo, batch, l, {});
  // -(0.5 * 1.1 * 2) + 0.5 * 0.8; the second sample is clipped.
  EXPECT_NEAR(got.loss, -1.1 + 0.4, 1e-12);
  EXPECT_NEAR(got.logprobs[0], -0.55, 1e-12);
  EXPECT_NEAR(got.logprobs[1], -0.55, 1e-12);
  EXPECT_EQ(got.logprobs[2], 0.0);
}

TEST(CispoObjective, WeighsTheLogProbByACutDetachedRatio) {
  auto algo = settings("cispo");
  algo.cispo_max = 2.5;
  // l = -1 + log 1.2; pi/mu = 1.2 and 6.
  const double l = -1 + std::log(1.2);
  expect_loss(one_token(algo, 2.0, 1.2), -1.2 * 2 * l, -2.4);
  expect_loss(one_token(algo, 2.0, 1.2, 5), -2.5 * 2 * l, -5);
}

TEST(ReinforceObjective, IsTheAdvantageTimesTheLogProb) {
  expect_loss(one_token(settings("reinforce"), -2.0, 1.0, 7), -2, 2);
}

TEST(OnlineDpoObjective, ComparesTheSamplesOfAPair) {
  // h = (0.5 - 0.1) - (-0.2) = 0.6; s = s(0.5 * 0.6) = s(0.3).
  auto algo = settings("online_dpo");
  algo.dpo_beta = 0.5;
  TokenBatch batch;
  batch.advantage = {1, 1, -1, 0, -0.0};
  batch.weight = Values(5, 0.2);
  batch.behaviour = Values(5, -1);
  batch.reference = {-1.5, -0.9, -0.8, -1, -1};
  batch.sample_ends = {2, 3, 4, 5};
  batch.pair_weight = 1;
  const auto got = loss_and_gradient(algo, batch, Values{-1, -1, -1, -3, -1}, {});
  const double s = 1 / (1 + std::exp(-0.3));
  EXPECT_NEAR(got.loss, -std::log(s), 1e-12);
  EXPECT_NEAR(got.logprobs[0], -(1 - s) * 0.5, 1e-12);
  EXPECT_NEAR(got.logprobs[1], -(1 - s) * 0.5, 1e-12);
  EXPECT_NEAR(got.logprobs[2], (1 - s) * 0.5, 1e-12);
  EXPECT_EQ(got.logprobs[3], 0.0);  // a pair without a best and a worst teaches nothing
}

TEST(KlInTheLoss, MatchesHandWorkedEstimators) {
  // d = l - l_ref = log 2; advantage 0 leaves the KL term alone.
  TokenBatch batch;
  batch.advantage = {0};
  batch.weight = {1};
  batch.anchor = {-1};
  batch.behaviour = {-1};
  batch.reference = {-1 - std::log(2.0)};
  auto algo = settings("ppo");
  algo.kl.init_coef = 0.5;
  algo.kl.estimator = "k2";
  expect_loss(loss_and_gradient(algo, batch, Values{-1}, {}), 0.5 * std::pow(std::log(2.0), 2) / 2,
              0.5 * std::log(2.0));
  algo.kl.estimator = "k3";  // 1/2 - 1 + log 2; gradient 1 - 1/2
  expect_loss(loss_and_gradient(algo, batch, Values{-1}, {}), 0.5 * (std::log(2.0) - 0.5), 0.25);
}

TEST(KlInTheLoss, IsWeightedByPolicyOverBehaviourWhenDecoupled) {
  // pi/mu = 3, cut to C, and without a gradient of its own; d = 1.
  TokenBatch batch;
  batch.advantage = {0};
  batch.weight = {1};
  batch.anchor = {-1};
  batch.behaviour = {-1 - std::log(3.0)};
  batch.reference = {-2};
  auto algo = settings("decoupled");
  algo.kl.init_coef = 1.0;
  algo.correction_max = 4;
  expect_loss(loss_and_gradient(algo, batch, Values{-1}, {}), 1.5, 3.0);
  algo.correction_max = 2;
  expect_loss(loss_and_gradient(algo, batch, Values{-1}, {}), 1.0, 2.0);
  // With mis the objective has weight 0 here; what holds the policy to the reference stays.
  algo.objective = "ppo";
  algo.correction.type = "mis";
  algo.correction.high = 2.5;
  batch.anchor = {-1};
  expect_loss(loss_and_gradient(algo, batch, Values{-1}, {}), 1.25, 2.5);
  algo.correction.type = "none";
  algo.objective = "ppo";
  expect_loss(loss_and_gradient(algo, batch, Values{-1}, {}), 0.5, 1.0);
}

// Two samples of one token: pi/pi_p = 1.1 and pi_p/mu = 3 with A = 1; all equal with A = -1.
TEST(Objectives, EachHasHandWorkedValues) {
  const double l = -1 + std::log(1.1);
  const double h = (l + 2) - (-1 + 1), s = 1 / (1 + std::exp(-0.5 * h));  // online_dpo
  struct Worked {
    double loss, first, second;
  };
  const std::map<std::string_view, Worked> worked = {
      {"ppo", {-1.1 + 1, -1.1, 1}},
      {"decoupled", {-2.2 + 1, -2.2, 1}},  // rho 3, cut to 2
      {"a3po", {-2.2 + 1, -2.2, 1}},       // without shares the same
      {"bypass", {-1.3 + 1, 0, 1}},        // pi/mu 3.3, clipped to 1.3
      {"gspo", {-1.1 + 1, -1.1, 1}},
      {"cispo", {-3.3 * l - 1, -3.3, 1}},
      {"reinforce", {-l - 1, -1, 1}},
      {"topr", {-l - 1, -1, 1}},
      {"online_dpo", {-std::log(s), -(1 - s) * 0.5, (1 - s) * 0.5}},
  };
  for (const Objective& objective : Objective::all()) {
    const auto found = worked.find(objective.name);
    ASSERT_NE(found, worked.end()) << objective.name << " needs hand-worked values here";
    auto algo = settings(objective);
    algo.dpo_beta = 0.5;
    TokenBatch batch;
    batch.advantage = {1, -1};
    batch.weight = {1, 1};
    batch.anchor = {-1, -1};
    batch.behaviour = {-1 - std::log(3.0), -1};
    batch.reference = {-2, -1};
    batch.sample_ends = {1, 2};
    batch.pair_weight = 1;
    const auto got = loss_and_gradient(algo, batch, Values{l, -1}, {});
    EXPECT_NEAR(got.loss, found->second.loss, 1e-12) << objective.name;
    EXPECT_NEAR(got.logprobs[0], found->second.first, 1e-12) << objective.name;
    EXPECT_NEAR(got.logprobs[1], found->second.second, 1e-12) << objective.name;
  }
}

TEST(EntropyTerm, LowersTheLoss) {
  TokenBatch batch;
  batch.advantage = {0, 0};
  batch.weight = {0.5, 0.25};
  batch.behaviour = {-1, -1};
  auto algo = settings("ppo");
  algo.entropy_coef = 0.1;
  const auto got = loss_and_gradient(algo, batch, Values{-1, -1}, Values{2, 3});
  EXPECT_NEAR(got.loss, -0.1 * (0.5 * 2 + 0.25 * 3), 1e-15);
  EXPECT_NEAR(got.entropy[0], -0.05, 1e-15);
  EXPECT_NEAR(got.entropy[1], -0.025, 1e-15);
}

TEST(Reducer, TokenMeanAndSampleMeanDifferOnUnequalLengths) {
  // Two samples of 1 and 3 tokens; per-token losses 4 and 1, 1, 1.
  EXPECT_DOUBLE_EQ(token_weight("token_mean", 1, 4, 2, 1), 0.25);
  EXPECT_DOUBLE_EQ(token_weight("token_mean", 1, 4, 2, 3), 0.25);
  EXPECT_DOUBLE_EQ(token_weight("sample_mean", 1, 4, 2, 1), 0.5);
  EXPECT_DOUBLE_EQ(token_weight("sample_mean", 1, 4, 2, 3), 1.0 / 6);
  // Dr.GRPO: divided by a constant, not by the length.
  EXPECT_DOUBLE_EQ(token_weight("constant", 1, 4, 2, 1, 10), 0.05);
  EXPECT_DOUBLE_EQ(token_weight("constant", 1, 4, 2, 3, 10), 0.05);
  // In three mini-batches each step keeps the scale of a mean.
  EXPECT_DOUBLE_EQ(token_weight("token_mean", 3, 4, 2, 3), 0.75);
  EXPECT_DOUBLE_EQ(token_weight("sample_mean", 3, 4, 2, 3), 0.5);
  TokenBatch batch;
  batch.advantage = {-4, -1, -1, -1};
  batch.behaviour = {-1, -1, -1, -1};
  for (const auto& [reducer, expected] : {std::pair{Chosen<Reducer>("token_mean"), 7.0 / 4},
                                          std::pair{Chosen<Reducer>("sample_mean"), 2.5}}) {
    batch.weight.clear();
    for (const double length : {1, 3, 3, 3}) {
      batch.weight.push_back(token_weight(reducer, 1, 4, 2, length));
    }
    const auto got = loss_and_gradient(settings("ppo"), batch, Values{-1, -1, -1, -1}, {});
    EXPECT_NEAR(got.loss, expected, 1e-14);
  }
}

TEST(PolicyLoss, GradientsMatchFiniteDifferences) {
  for (const KlEstimator& estimator : KlEstimator::all()) {
    if (!estimator.in_loss) continue;
    Values l;
    const TokenBatch batch = mixed_batch(&l);
    auto algo = settings("ppo");
    algo.kl.init_coef = 0.3;
    algo.kl.estimator = estimator;
    algo.entropy_coef = 0.02;
    expect_finite_differences(algo, batch, l, Values(l.size(), 1.5));
  }
}

TEST(PolicyLoss, DecoupledGradientsMatchFiniteDifferences) {
  Values l;
  const TokenBatch batch = mixed_batch(&l);
  // The KL term is left out: its weight moves with l and is detached, which differences cannot see.
  expect_finite_differences(settings("decoupled"), batch, l, {});
}

TEST(PolicyLoss, GradientsOfTheOtherObjectivesMatchFiniteDifferences) {
  Values l;
  TokenBatch batch = mixed_batch(&l);
  batch.sample_ends = {4, 8};
  batch.pair_weight = 0.7;
  for (const Objective& objective : Objective::all()) {
    if (objective.behaviour_ratio && objective.weigh != nullptr)
      continue;  // moves with l, detached
    auto algo = settings(objective);
    algo.eps_clip_low_high = {0.45, 0.45};  // no ratio is at an edge
    expect_finite_differences(algo, batch, l, {});
  }
  auto dual = settings("ppo");
  dual.dual_clip = 1.4;
  expect_finite_differences(dual, batch, l, {});
  // Corrections are computed from the anchor, which does not move with l.
  for (const Correction& correction : Correction::all()) {
    if (correction.name == "opsm") continue;  // reads the policy of the step
    auto algo = settings("ppo");
    algo.correction.type = correction;
    algo.correction.low = 0.7;
    algo.correction.high = 1.2;
    expect_finite_differences(algo, batch, l, {});
  }
}

TEST(PolicyLoss, K2GradientAveragedOverThePolicyIsThatOfTheReverseKl) {
  // Two-token vocabulary with p = s(z): KL(pi || ref) has slope p(1-p) * (logit p - logit q) in z.
  // k2's gradient d * dl/dz averaged over y ~ pi must equal it; the value of k1 would give zero.
  const double z = 0.4, q = 0.3;
  const double p = 1 / (1 + std::exp(-z));
  auto algo = settings("ppo");
  algo.kl.init_coef = 1;
  algo.kl.estimator = "k2";
  TokenBatch batch;
  batch.advantage = {0, 0};
  batch.weight = {p, 1 - p};
  batch.behaviour = {std::log(p), std::log(1 - p)};
  batch.reference = {std::log(q), std::log(1 - q)};
  const auto got = loss_and_gradient(algo, batch, batch.behaviour, {});
  const double slope = got.logprobs[0] * (1 - p) + got.logprobs[1] * -p;
  EXPECT_NEAR(slope, p * (1 - p) * (z - std::log(q / (1 - q))), 1e-14);
}

}  // namespace troupe::learn
