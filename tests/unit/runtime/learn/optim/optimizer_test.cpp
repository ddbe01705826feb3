// AdamW against hand-worked steps; norms; the same bits for every team.
#include "runtime/learn/optim/optimizer.hpp"

#include "runtime/core/rng.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace troupe::learn {
namespace {

OptimSettings optim(double weight_decay) {
  OptimSettings settings;
  settings.adam.betas[0] = 0.9;
  settings.adam.betas[1] = 0.95;
  settings.adam.eps = 1e-8;
  settings.adam.weight_decay = weight_decay;
  return settings;
}

}  // namespace

TEST(AdamW, TwoHandWorkedSteps) {
  // p = 1, lr 0.1. Step 1, g = 2: m/(1-b1) = 2, v/(1-b2) = 4, so p = 1 - 0.1 * 2/2 = 0.9.
  // Step 2, g = -1: m = 0.9*0.2 - 0.1 = 0.08, over 1 - 0.81 = 0.19: 0.42105263;
  // v = 0.95*0.2 + 0.05 = 0.24, over 1 - 0.9025 = 0.0975: 2.46153846, root 1.56892908;
  // p = 0.9 - 0.1 * 0.42105263/1.56892908 = 0.87316300.
  const auto spec = tiny_spec();
  core::SerialTeam team;
  model::ParamStore params(spec), grads(spec);
  StoreOptimizer adamw(params, params.layout(), optim(0.0));
  params.data()[3] = 1.0f;
  grads.data()[3] = 2.0f;
  adamw.step(team, params, grads, 0.1, 1.0);
  EXPECT_NEAR(params.data()[3], 0.9, 1e-6);
  grads.data()[3] = -1.0f;
  adamw.step(team, params, grads, 0.1, 1.0);
  EXPECT_NEAR(params.data()[3], 0.87316300, 1e-6);
  EXPECT_NEAR(adamw.moment(Moment::kFirst).floats()[3], 0.08, 1e-7);
  EXPECT_NEAR(adamw.moment(Moment::kSecond).floats()[3], 0.24, 1e-7);
  EXPECT_EQ(adamw.steps(), 2);
  EXPECT_EQ(params.data()[4], 0.0f);
}

TEST(AdamW, WeightDecayIsDecoupledAndOnEveryTensor) {
  // g = 0: only p -= lr * wd * p, and the moments stay 0.
  const auto spec = tiny_spec();
  core::SerialTeam team;
  model::ParamStore params(spec), grads(spec);
  StoreOptimizer adamw(params, params.layout(), optim(0.5));
  for (const auto& view : params.layout().views)
    params.data()[view.offset] = 2.0f;
  adamw.step(team, params, grads, 0.1, 1.0);
  for (const auto& view : params.layout().views) {
    EXPECT_NEAR(params.data()[view.offset], 1.9, 1e-6) << view.name;
    EXPECT_EQ(adamw.moment(Moment::kSecond).floats()[view.offset], 0.0f);
  }
}

TEST(AdamW, ScalesTheGradientBeforeTheMoments) {
  const auto spec = tiny_spec();
  core::SerialTeam team;
  model::ParamStore params(spec), grads(spec);
  StoreOptimizer adamw(params, params.layout(), optim(0.0));
  grads.data()[0] = 8.0f;
  adamw.step(team, params, grads, 0.1, 0.25);
  EXPECT_NEAR(adamw.moment(Moment::kFirst).floats()[0], 0.2, 1e-7);
  EXPECT_NEAR(adamw.moment(Moment::kSecond).floats()[0], 0.2, 1e-7);
}

TEST(AdamW, HasTheSameBitsForEveryTeam) {
  const auto spec = tiny_spec();
  core::SerialTeam one;
  ThreadTeam three(3);
  model::ParamStore a(spec), b(spec), grads(spec);
  model::randomise(a, 1, 0.1f);
  model::randomise(b, 1, 0.1f);
  StoreOptimizer first(a, a.layout(), optim(0.01)), second(b, b.layout(), optim(0.01));
  for (std::uint64_t step = 0; step < 3; ++step) {
    model::randomise(grads, 10 + step, 0.5f);
    first.step(one, a, grads, 1e-2, 0.3);
    second.step(three, b, grads, 1e-2, 0.3);
  }
  const auto bytes = static_cast<std::size_t>(a.size()) * sizeof(float);
  EXPECT_EQ(std::memcmp(a.data(), b.data(), bytes), 0);
}

TEST(GlobalNorm, IsTheRootOfTheSumOfSquares) {
  core::SerialTeam team;
  std::vector<float> x(10'000, 0.0f);
  x[0] = 3;
  x[4096] = 4;
  x[9999] = 12;
  EXPECT_EQ(global_norm(team, x.data(), 10'000), 13.0);
  EXPECT_EQ(global_norm(team, x.data(), 4096), 3.0);
  EXPECT_EQ(global_norm(team, x.data(), 0), 0.0);
}

TEST(GlobalNorm, HasTheSameBitsForEveryTeam) {
  core::Rng rng(8);
  std::vector<float> x(100'003);
  for (float& value : x)
    value = static_cast<float>(rng.next_normal());
  core::SerialTeam one;
  const double expected = global_norm(one, x.data(), 100'003);
  for (const int size : {2, 3, 5}) {
    ThreadTeam team(size);
    EXPECT_EQ(global_norm(team, x.data(), 100'003), expected);
  }
}

TEST(GlobalNorm, IsFiniteUnlessAValueIsNot) {
  core::SerialTeam team;
  std::vector<float> x(5000, std::numeric_limits<float>::max());
  EXPECT_TRUE(std::isfinite(global_norm(team, x.data(), 5000)));
  x[4999] = std::nanf("");
  EXPECT_FALSE(std::isfinite(global_norm(team, x.data(), 5000)));
  x[4999] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(global_norm(team, x.data(), 5000)));
}

TEST(ClipScale, ShrinksOnlyWhatIsTooLong) {
  EXPECT_EQ(clip_scale(0.5, 1.0), 1.0);
  EXPECT_NEAR(clip_scale(4.0, 1.0), 0.25, 1e-6);
  EXPECT_EQ(clip_scale(4.0, 0.0), 1.0);
}

TEST(FirstNonfinite, NamesTheTensor) {
  model::ParamStore store(tiny_spec());
  core::SerialTeam team;
  EXPECT_EQ(first_nonfinite(team, store), "");
  store.view("model.layers.1.mlp.up_proj.weight")[5] = std::nanf("");
  EXPECT_EQ(first_nonfinite(team, store), "model.layers.1.mlp.up_proj.weight");
}

}  // namespace troupe::learn
