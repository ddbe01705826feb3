// The one forward and backward pass with the numbers on a device: the host's bits, for every dense
// family, and refusal of what only the processor computes.
#include "runtime/model/device_check.hpp"
#include "runtime/model/score.hpp"
#include "tests/unit/runtime/model/device_team.hpp"
#include "tests/unit/runtime/model/gradient_problem.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace troupe::model {
namespace {

// Three blocks of vocabulary, of which the last is short.
ModelSpec wide_spec() {
  ModelSpec spec = qwen_spec();
  spec.vocab = 2 * kernels::kVocabBlock + 77;
  spec.final_softcap = 4;
  return spec;
}

ModelSpec tied(ModelSpec spec, bool value) {
  spec.tied = value;
  return spec;
}

std::vector<ModelSpec> dense_specs() {
  return {tiny_spec(),
          tied(tiny_spec(), false),
          qwen_spec(),
          qwen3_spec(),
          phi3_spec(),
          gemma_spec(),
          tied(gemma_spec(), false),
          wide_spec(),
          with_score_head(qwen_spec()),
          with_score_head(gemma_spec())};
}

class DeviceOf : public OnDevice<::testing::TestWithParam<ModelSpec>> {};
INSTANTIATE_TEST_SUITE_P(Dense, DeviceOf, ::testing::ValuesIn(dense_specs()));

struct Scores {
  std::vector<float> logprobs, entropies;
  bool operator==(const Scores&) const = default;
};

Scores scores(core::TeamRunner& team, const PackedWeights& weights, GroupPlan& group) {
  group.plan.place(team.memory());
  ScoreScratch scratch;
  Scores out;
  if (weights.spec().head == HeadKind::kScore) {
    out.logprobs.resize(group.plan.logit_rows.size());
    score_values(team, weights, group.plan, scratch, out.logprobs);
    return out;
  }
  out.logprobs.resize(group.targets.token.size());
  out.entropies = out.logprobs;
  score_logprobs(team, weights, group.plan, group.targets, 0.7f, scratch, out.logprobs,
                 out.entropies);
  return out;
}

TEST_P(DeviceOf, ScoresHaveTheHostsBits) {
  const GradientProblem problem(GetParam());
  core::SerialTeam host;
  GroupPlan group = problem.plan(1);
  for (const auto dtype : {kernels::PanelDtype::kF32, kernels::PanelDtype::kBf16}) {
    PackedWeights weights(GetParam(), dtype);
    weights.fill({}, problem.model.params, 1);
    const DeviceModel on_device(device(), problem.model.params, dtype);
    group.plan.place(core::host_memory());
    const Scores expected = scores(host, weights, group);
    EXPECT_EQ(scores(device(), on_device.weights, group), expected);
    EXPECT_NE(expected.logprobs, std::vector<float>(expected.logprobs.size()));
  }
}

// Panels that are made of units which come from the host one after another.
TEST_P(DeviceOf, PanelsFilledFromTheHostAreTheSame) {
  const GradientProblem problem(GetParam());
  core::SerialTeam host;
  GroupPlan group = problem.plan(1);
  PackedWeights weights(GetParam(), kernels::PanelDtype::kF32, memory());
  device().run([&](core::Team) {
    for (std::int64_t unit = weights.fill_units(); unit-- > 0;)
      weights.fill_unit(unit, problem.model.params.data());
  });
  const Scores expected = scores(host, problem.model.weights, group);
  EXPECT_EQ(scores(device(), weights, group), expected);
}

struct Pass {
  std::vector<float> terms, entropies, grads;
  bool operator==(const Pass&) const = default;
};

// Two micro-batches, so that what the first one left behind counts.
Pass pass(core::TeamRunner& team,
          const ParamStore& params,
          const PackedWeights& weights,
          GroupPlan& group,
          bool checkpointing) {
  group.plan.place(team.memory());
  ParamStore grads(params.spec(), params.shared_layout(), team.memory());
  TrainTape tape(team, params, &grads, {.checkpointing = checkpointing});
  Pass out;
  for (int i = 0; i < 2; ++i) {
    tape.begin(weights, group.plan);
    tape.forward_embedding();
    for (std::int64_t layer = 0; layer < params.spec().layers; ++layer)
      tape.forward_layer(layer);
    tape.forward_final_norm();
    if (params.spec().head == HeadKind::kScore) {
      tape.head().forward_values();
      out.terms = tape.head().values();
      tape.head().backward_values(GradientProblem::coefficients(out.terms.size()).data());
    } else {
      tape.head().forward(group.targets, 0.8f, true);
      out.terms = tape.head().logprobs();
      out.entropies = tape.head().entropies();
      const auto c = GradientProblem::coefficients(out.terms.size() + 1);
      tape.head().backward(c.data(), i == 0 ? nullptr : c.data() + 1);
    }
    tape.backward_final_norm();
    for (std::int64_t layer = params.spec().layers; layer-- > 0;)
      tape.backward_layer(layer);
    tape.backward_embedding();
  }
  out.grads = numbers_of(grads);
  return out;
}

TEST_P(DeviceOf, GradientsHaveTheHostsBits) {
  const GradientProblem problem(GetParam());
  const DeviceModel on_device(device(), problem.model.params);
  core::SerialTeam host;
  GroupPlan group = problem.plan(1);
  const Pass expected = pass(host, problem.model.params, problem.model.weights, group, false);
  for (const bool checkpointing : {false, true}) {
    EXPECT_EQ(pass(device(), on_device.params, on_device.weights, group, checkpointing), expected)
        << checkpointing;
  }
}

class Device : public OnDevice<::testing::Test> {};

TEST_F(Device, AStoreGoesThereAndBack) {
  const TestModel model(tiny_spec());
  const ParamStore there = model.params.to(memory());
  const ParamStore copy = there.to(memory());
  EXPECT_EQ(&copy.memory(), &memory());
  EXPECT_EQ(numbers_of(copy), numbers_of(model.params));
  const ParamStore zeros = there.same_layout();
  EXPECT_EQ(numbers_of(zeros), std::vector<float>(static_cast<std::size_t>(zeros.size())));
}

TEST_F(Device, BlocksOfAPoolAreCopied) {
  KvPool pool(tiny_spec(), 2, 4, memory());
  const auto size = static_cast<std::size_t>(pool.block_size());
  const std::vector<float> ones(size, 1.0f);
  memory().upload(pool.k(1).f32() + pool.block_size(), ones.data(), size * sizeof(float));
  pool.copy_block(1, 3);
  std::vector<float> found(size);
  memory().download(found.data(), pool.k(1).f32() + 3 * pool.block_size(), size * sizeof(float));
  EXPECT_EQ(found, ones);
  memory().download(found.data(), pool.k(0).f32() + 3 * pool.block_size(), size * sizeof(float));
  EXPECT_EQ(found, std::vector<float>(size));
}

// Lists of another step behind the first in the same block of memory.
TEST_F(Device, APlanIsPlacedAgainAndAgain) {
  GradientProblem problem(tiny_spec());
  const DeviceModel on_device(device(), problem.model.params);
  core::SerialTeam host;
  GroupPlan group = problem.plan(1);
  (void)scores(device(), on_device.weights, group);
  problem.groups.pop_back();
  ASSERT_TRUE(build_group_plan(problem.groups, tiny_spec(), 1, group));
  EXPECT_FALSE(group.plan.placed_in(memory()));
  const Scores found = scores(device(), on_device.weights, group);
  EXPECT_TRUE(group.plan.placed_in(memory()));
  EXPECT_FALSE(group.plan.placed_in(core::host_memory()));
  EXPECT_EQ(found, scores(host, problem.model.weights, group));
}

TEST_F(Device, ExpertsAreRefused) {
  EXPECT_TRUE(check_memory(gemma_spec(), memory(), "actor"));
  EXPECT_TRUE(check_memory(mixtral_spec(), core::host_memory(), "actor"));
  const auto experts = check_memory(mixtral_spec(), memory(), "critic");
  ASSERT_FALSE(experts);
  EXPECT_EQ(experts.error().message,
            "the experts of MixtralForCausalLM are computed on the processor only; set "
            "--critic.device cpu");
}

}  // namespace
}  // namespace troupe::model
