// The score head: values by hand, their gradient against finite differences, and the same bits in
// any batch, on any team and with any level of the kernels.
#include "runtime/model/value_head.hpp"

#include "kernels/dispatch.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/train_graph.hpp"
#include "runtime/model/train_tape.hpp"
#include "tests/unit/runtime/model/same_bits.hpp"
#include "tests/unit/runtime/model/test_models.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace troupe::model {
namespace {

struct ValueProblem {
  explicit ValueProblem(const ModelSpec& body, float std = 0.15f)
      : model(with_score_head(body), std) {
    prompts = {some_tokens(21, body.vocab, 1), some_tokens(16, body.vocab, 2)};
    for (int i = 0; i < 4; ++i)
      responses.push_back(some_tokens(3 + 9 * i, body.vocab, 10 + i));
    groups = {{prompts[0], {responses[0], responses[3]}},
              {prompts[1], {responses[1], responses[2]}}};
  }
  ForwardPlan plan(int members) const {
    GroupPlan out;
    EXPECT_TRUE(build_group_plan(groups, model.params.spec(), members, out));
    return std::move(out.plan);
  }
  TestModel model;
  std::vector<std::vector<std::int32_t>> prompts, responses;
  std::vector<SampleGroup> groups;
};

std::vector<float> values_of(core::TeamRunner& team, const ValueProblem& problem) {
  const ForwardPlan plan = problem.plan(team.size());
  std::vector<float> values(plan.logit_rows.size());
  ScoreScratch scratch;
  score_values(team, problem.model.weights, plan, scratch, values);
  return values;
}

void forward(TrainTape& tape, const PackedWeights& weights, const ForwardPlan& plan) {
  tape.begin(weights, plan);
  tape.forward_embedding();
  for (std::int64_t i = 0; i < tape.spec().layers; ++i)
    tape.forward_layer(i);
  tape.forward_final_norm();
  tape.head().forward_values();
}

// dL/dv of L = sum_i c_i v_i, with c as a batch's losses have it: not the same for all.
std::vector<float> coefficients(std::size_t count) {
  std::vector<float> c;
  for (std::size_t i = 0; i < count; ++i)
    c.push_back(0.3f + 0.2f * static_cast<float>(i % 7));
  return c;
}

ParamStore gradient_of(core::TeamRunner& team, const ValueProblem& problem) {
  ParamStore grads = problem.model.params.same_layout();
  const ForwardPlan plan = problem.plan(team.size());
  TrainTape tape(team, problem.model.params, &grads);
  forward(tape, problem.model.weights, plan);
  const auto c = coefficients(tape.head().values().size());
  tape.head().backward_values(c.data());
  tape.backward_final_norm();
  for (std::int64_t i = tape.spec().layers; i-- > 0;)
    tape.backward_layer(i);
  tape.backward_embedding();
  return grads;
}

class ValueHead : public testing::TestWithParam<ModelSpec> {};

// Two head rows of three numbers: small enough to do on paper.
TEST(ValueHeadByHand, ValuesAndBothGradients) {
  ModelSpec spec = with_score_head(tiny_spec());
  spec.hidden = 3;
  spec.head_dim = 2;
  ParamStore params(spec), grads(spec);
  const auto head = params.view("score.weight");
  ASSERT_EQ(head.size(), 3u);
  head[0] = 0.5f, head[1] = -1.0f, head[2] = 2.0f;
  PackedWeights weights(spec);
  weights.fill({}, params, 1);
  const float head_in[] = {1, 2, 3, -4, 0.5f, 1};
  float values[2];
  value_forward({}, weights, head_in, 2, values);
  EXPECT_EQ(values[0], 4.5f);   // 0.5 - 2 + 6
  EXPECT_EQ(values[1], -0.5f);  // -2 - 0.5 + 2
  const float dvalues[] = {2, -1};
  float dhead_in[6];
  core::SerialTeam one;
  ValueScratch scratch;
  scratch.prepare(one, spec, 2, true);
  grads.view("score.weight")[0] = 10;  // gradients add up
  value_backward({}, {head_in, 2, dvalues, params, grads, dhead_in}, scratch);
  const auto dhead = grads.view("score.weight");
  EXPECT_EQ(dhead[0], 16.0f);  // 10 + 2 * 1 + 4
  EXPECT_EQ(dhead[1], 3.5f);   // 4 - 0.5
  EXPECT_EQ(dhead[2], 5.0f);   // 6 - 1
  const float expected[] = {1, -2, 4, -0.5f, 1, -2};
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(dhead_in[i], expected[i]) << i;
}

TEST(ValueHeadByHand, MoreRowsThanAChunkAddUp) {
  const ModelSpec spec = with_score_head(qwen_spec());
  const TestModel model(spec);
  ParamStore grads(spec);
  const std::int64_t rows = kValueRows_max + 5;
  const std::vector<float> head_in(static_cast<std::size_t>(rows * spec.hidden), 1.0f);
  const std::vector<float> dvalues(static_cast<std::size_t>(rows), 1.0f);
  std::vector<float> dhead_in(head_in.size());
  PairTeam team;
  ValueScratch scratch;
  scratch.prepare(team, spec, rows, true);
  team.run([&](core::Team member) {
    value_backward(member,
                   {head_in.data(), rows, dvalues.data(), model.params, grads, dhead_in.data()},
                   scratch);
  });
  for (const float g : grads.view("score.weight"))
    ASSERT_EQ(g, static_cast<float>(rows));
  const auto head = model.params.view("score.weight");
  ASSERT_TRUE(same_bits(dhead_in.data() + (rows - 1) * spec.hidden, head.data(), spec.hidden));
}

TEST_P(ValueHead, EveryTensorAgreesWithFiniteDifferences) {
  // Every token passes all experts: then no choice flips when a weight moves a little.
  ModelSpec spec = GetParam();
  spec.moe.experts = spec.moe.experts_per_token;
  ValueProblem problem(spec);
  core::SerialTeam serial;
  const ParamStore grads = gradient_of(serial, problem);
  const auto loss = [&] {
    problem.model.repack();
    const auto values = values_of(serial, problem);
    const auto c = coefficients(values.size());
    double sum = 0;
    for (std::size_t i = 0; i < c.size(); ++i)
      sum += static_cast<double>(c[i]) * static_cast<double>(values[i]);
    return sum;
  };
  for (const ParamView& view : problem.model.params.layout().views) {
    const float* gradient = grads.data() + view.offset;
    float* weights = problem.model.params.data() + view.offset;
    double norm = 0;
    for (std::int64_t i = 0; i < view.count; ++i)
      norm += std::pow(static_cast<double>(gradient[i]), 2);
    norm = std::sqrt(norm);
    ASSERT_GT(norm, 0) << view.name;
    const std::vector<float> saved(weights, weights + view.count);
    const auto step = [&](double by) {
      for (std::size_t i = 0; i < saved.size(); ++i) {
        weights[i] = static_cast<float>(static_cast<double>(saved[i]) +
                                        by * static_cast<double>(gradient[i]) / norm);
      }
      const double at = loss();
      std::copy(saved.begin(), saved.end(), weights);
      return at;
    };
    const double h = 4e-3;
    const double slope = (8 * (step(h) - step(-h)) - (step(2 * h) - step(-2 * h))) / (12 * h);
    EXPECT_NEAR(slope / norm, 1.0, 4e-3) << view.name;
  }
}

TEST_P(ValueHead, BatchesTeamsAndThePassGiveTheSameBits) {
  const ValueProblem problem(GetParam());
  core::SerialTeam serial;
  PairTeam pair;
  const auto one = values_of(serial, problem);
  const auto two = values_of(pair, problem);
  ASSERT_TRUE(same_bits(one.data(), two.data(), static_cast<std::int64_t>(one.size())));
  const ParamStore grads = gradient_of(serial, problem), other = gradient_of(pair, problem);
  EXPECT_TRUE(same_bits(grads.data(), other.data(), grads.size()));
  TrainTape tape(serial, problem.model.params, nullptr);
  forward(tape, problem.model.weights, problem.plan(1));
  EXPECT_TRUE(
      same_bits(one.data(), tape.head().values().data(), static_cast<std::int64_t>(one.size())));
  // Each sample alone: the rows of its prompt's end and of its response.
  std::vector<float> alone;
  for (const SampleGroup& group : problem.groups) {
    for (std::size_t i = 0; i < group.responses.size(); ++i) {
      const SampleGroup single{group.prompt, {group.responses[i]}};
      GroupPlan plan;
      ASSERT_TRUE(build_group_plan({&single, 1}, problem.model.params.spec(), 1, plan));
      std::vector<float> values(plan.plan.logit_rows.size());
      ScoreScratch scratch;
      score_values(serial, problem.model.weights, plan.plan, scratch, values);
      if (i > 0) values.erase(values.begin());  // the shared prompt's row is there already
      alone.insert(alone.end(), values.begin(), values.end());
    }
  }
  ASSERT_EQ(alone.size(), one.size());
  EXPECT_TRUE(same_bits(alone.data(), one.data(), static_cast<std::int64_t>(one.size())));
}

TEST_P(ValueHead, TheGraphCarriesTheTapesGradients) {
  const ValueProblem problem(GetParam());
  core::SerialTeam serial;
  const ParamStore by_tape = gradient_of(serial, problem);
  ParamStore by_graph = problem.model.params.same_layout();
  const ForwardPlan plan = problem.plan(1);
  TrainForward graph(serial, problem.model.params, &by_graph);
  const at::Tensor values = graph.values(problem.model.weights, plan);
  const auto count = static_cast<std::int64_t>(plan.logit_rows.size());
  ASSERT_EQ(values.numel(), count);
  EXPECT_TRUE(same_bits(values.data_ptr<float>(), values_of(serial, problem).data(), count));
  auto c = coefficients(plan.logit_rows.size());
  (values * at::from_blob(c.data(), {count}, at::kFloat)).sum().backward();
  EXPECT_TRUE(same_bits(by_tape.data(), by_graph.data(), by_graph.size()));
}

INSTANTIATE_TEST_SUITE_P(Specs, ValueHead, testing::ValuesIn(varied_specs()), [](const auto& i) {
  return i.param.architecture;
});

// The head's product by hand on each level's table, as value_forward calls it.
TEST(ValueHeadByHand, AllLevelsOfTheKernelsGiveTheSameBits) {
  const ModelSpec spec = with_score_head(tiny_spec());
  const TestModel model(spec, 0.3f);
  const std::int64_t rows = 37;
  const TestModel inputs(tiny_spec(), 1.0f, 9);
  std::vector<float> expected(rows);
  value_forward({}, model.weights, inputs.params.data(), rows, expected.data());
  for (const auto isa : {kernels::Isa::kReference, kernels::Isa::kAvx2, kernels::Isa::kAvx512}) {
    if (!kernels::isa_available(isa)) continue;
    std::vector<float> values(rows);
    const kernels::Gemm gemm{.m = rows,
                             .n = 1,
                             .k = spec.hidden,
                             .a = inputs.params.data(),
                             .lda = spec.hidden,
                             .b = model.weights.head(),
                             .c = values.data(),
                             .ldc = 1};
    kernels::ops_for(isa).gemm(gemm, {0, rows}, {0, 1});
    EXPECT_TRUE(same_bits(values.data(), expected.data(), rows)) << static_cast<int>(isa);
  }
}

}  // namespace
}  // namespace troupe::model
