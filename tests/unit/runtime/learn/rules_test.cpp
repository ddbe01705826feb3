// The rules between choices: which key a combination is refused at, and what to give instead.
#include "runtime/learn/settings.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace troupe::learn {
namespace {

// "key: why; advice", or "accepted".
std::string said(const std::function<void(AlgoSettings&)>& change) {
  AlgoSettings algo;
  change(algo);
  const auto refused = refusal(algo);
  if (!refused) return "accepted";
  return refused->key + ": " + refused->why +
         (refused->advice.empty() ? "" : "; " + refused->advice);
}

}  // namespace

TEST(Rules, GroupEstimatorsNeedTwoSamplesAndNoDiscount) {
  EXPECT_EQ(
      said([](AlgoSettings& a) { a.samples_per_prompt = 1; }),
      "rollout.n_samples_per_prompt: algo.advantage.estimator group_norm compares the samples "
      "of a prompt: give at least 2");
  EXPECT_EQ(said([](AlgoSettings& a) {
              a.advantage.estimator = "gae";
              a.samples_per_prompt = 1;
              a.advantage.gamma = 0.9;
            }),
            "accepted");
  EXPECT_EQ(said([](AlgoSettings& a) { a.advantage.gamma = 0.9; }),
            "algo.advantage.gamma: group_norm has one reward a sample: give 1");
}

TEST(Rules, ACorrectionMayNotWeighTwice) {
  for (const Objective& objective : Objective::all()) {
    for (const Correction& correction : Correction::all()) {
      const std::string answer = said([&](AlgoSettings& a) {
        a.objective = objective;
        a.correction.type = correction;
        if (!objective.reducer.empty()) a.reducer = objective.reducer;
      });
      const bool own = objective.weighs_old_tokens() && correction.carries_rho;
      const bool pairs = objective.pairs && correction.weigh != nullptr;
      EXPECT_EQ(answer == "accepted", !own && !pairs) << answer;
      if (own || pairs) {
        EXPECT_TRUE(answer.starts_with("algo.correction.type: ")) << answer;
      }
    }
  }
  EXPECT_EQ(
      said([](AlgoSettings& a) { a.correction.type = "tis"; }),
      "algo.correction.type: decoupled weighs tokens of older policies itself; tis would do it "
      "twice: give --algo.objective ppo, or one of geo_rs, m2po, opsm");
}

TEST(Rules, ObjectivesOverGroupsNeedThem) {
  EXPECT_EQ(
      said([](AlgoSettings& a) {
        a.objective = "online_dpo";
        a.advantage.estimator = "gae";
      }),
      "algo.advantage.estimator: gae compares no samples, which online_dpo does: give rloo or "
      "dr_grpo");
  EXPECT_EQ(said([](AlgoSettings& a) { a.objective = "gspo"; }),
            "algo.objective: gspo has one advantage a sample and a mean over samples: give "
            "--algo.reducer sample_mean and an estimator that compares samples");
  const auto gspo = [](AlgoSettings& a) {
    a.objective = "gspo";
    a.reducer = "sample_mean";
    a.kl.init_coef = 0.1;
    a.kl.use_loss = false;
  };
  EXPECT_EQ(
      said(gspo),
      "algo.kl.use_loss: gspo has one advantage a sample: give --algo.kl.per_sample true too");
  EXPECT_EQ(said([&](AlgoSettings& a) {
              gspo(a);
              a.kl.per_sample = true;
            }),
            "accepted");
}

TEST(Rules, OfTheKl) {
  EXPECT_EQ(said([](AlgoSettings& a) {
              a.kl.init_coef = 1;
              a.kl.estimator = "k1";
            }),
            "algo.kl.estimator: k1 has no expected gradient in the loss: give k2 or k3, or "
            "--algo.kl.use_loss false");
  EXPECT_EQ(said([](AlgoSettings& a) { a.kl.target = 6; }),
            "algo.kl.target: steers algo.kl.init_coef, which is 0");
  EXPECT_EQ(said([](AlgoSettings& a) { a.kl.per_sample = true; }),
            "algo.kl.per_sample: is of the reward: give --algo.kl.use_loss false");
}

TEST(Rules, OfBounds) {
  EXPECT_EQ(said([](AlgoSettings& a) { a.dual_clip = 1; }),
            "actor.dual_clip: must be above 1, or 0 for none");
  for (const Correction& correction : Correction::all()) {
    const std::string answer = said([&](AlgoSettings& a) {
      a.objective = "ppo";
      a.correction.type = correction;
      a.correction.low = a.correction.high;
    });
    EXPECT_EQ(answer, correction.has_range
                          ? "algo.correction.low: must be below algo.correction.high"
                          : "accepted")
        << correction.name;
  }
}

}  // namespace troupe::learn
