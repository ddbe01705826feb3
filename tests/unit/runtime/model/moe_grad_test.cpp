// The gradient of a layer of experts: the router's by differences, the bits of all with parts
// frozen and with checkpointing. Whole models: gradient_test.cpp and
// tests/oracle/model_gradients_test.py.
#include "runtime/model/moe_grad.hpp"

#include "runtime/model/trained_layout.hpp"
#include "tests/unit/runtime/model/gradient_problem.hpp"

#include <cmath>

namespace troupe::model {
namespace {

// sum_i c_i w_i of the chosen weights, in double.
double weighted_sum(const MoeSpec& spec,
                    const std::vector<double>& logits,
                    const std::vector<std::int32_t>& chosen,
                    const std::vector<float>& c) {
  double all = 0, of_chosen = 0, sum = 0;
  for (const double z : logits)
    all += std::exp(z);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const double p = std::exp(logits[static_cast<std::size_t>(chosen[i])]) / all;
    of_chosen += p;
    sum += static_cast<double>(c[i]) * p;
  }
  return spec.norm_topk ? sum / of_chosen : sum;
}

TEST(RoutingBackward, IsTheSlopeOfTheWeightsInTheLogits) {
  for (const bool norm_topk : {false, true}) {
    MoeSpec spec;
    spec.experts = 5;
    spec.experts_per_token = 3;
    spec.norm_topk = norm_topk;
    const std::vector<double> logits = {0.3, -1.0, 1.2, 0.0, 0.8};
    const std::vector<float> dw = {0.7f, -0.4f, 1.5f};
    std::vector<float> p(logits.begin(), logits.end()), weight(3);
    std::vector<std::int32_t> chosen(3), place(3);
    route_rows(spec, {p.data(), 5, chosen.data(), weight.data(), place.data()}, 0, 1);
    ASSERT_EQ(chosen, (std::vector<std::int32_t>{0, 2, 4}));
    routing_backward(spec, p.data(), chosen.data(), weight.data(), dw.data());
    for (std::size_t e = 0; e < 5; ++e) {
      std::vector<double> up = logits, down = logits;
      up[e] += 1e-5;
      down[e] -= 1e-5;
      const double slope =
          (weighted_sum(spec, up, chosen, dw) - weighted_sum(spec, down, chosen, dw)) / 2e-5;
      EXPECT_NEAR(static_cast<double>(p[e]), slope, 1e-6) << "expert " << e << ", " << norm_topk;
    }
  }
}

// With one expert a token whose weight is normed, the weight is 1 and the router learns nothing.
TEST(RoutingBackward, AWeightThatIsAlwaysOneHasNoGradient) {
  MoeSpec spec;
  spec.experts = 3;
  spec.experts_per_token = 1;
  spec.norm_topk = true;
  float p[3] = {0.25f, 0.5f, 0.25f};
  const std::int32_t chosen = 1;
  const float weight = 1.0f, dw = 3.0f;
  routing_backward(spec, p, &chosen, &weight, &dw);
  for (const float value : p)
    EXPECT_EQ(value, 0.0f);
}

class SparseGradient : public testing::TestWithParam<ModelSpec> {};

TEST_P(SparseGradient, FrozenPartsChangeNoBitOfTheOthers) {
  const GradientProblem problem(GetParam());
  core::SerialTeam serial;
  PairTeam pair;
  const auto whole = problem.gradient(serial);
  const bool mixtral = GetParam().moe.names == MoeNames::kMixtral;
  const std::vector<std::string> gates = {mixtral ? "w1" : "gate_proj"};
  const std::vector<std::string> ups = {mixtral ? "w3" : "up_proj"};
  const std::vector<std::string> downs = {mixtral ? "w2" : "down_proj"};
  for (const auto& freeze : {gates, ups, downs, std::vector<std::string>{".experts.1."},
                             std::vector<std::string>{".gate."},
                             std::vector<std::string>{mixtral ? ".experts." : "shared_expert"}}) {
    TrainedSet set;
    set.freeze = freeze;
    const auto layout = trained_layout(GetParam(), set, "actor");
    ASSERT_TRUE(layout);
    const auto part = problem.gradient(pair, layout.value());
    ASSERT_LT(part.grads.layout().views.size(), whole.grads.layout().views.size());
    for (const ParamView& view : part.grads.layout().views) {
      const ParamView* of_whole = whole.grads.layout().find(view.name);
      ASSERT_NE(of_whole, nullptr);
      ASSERT_TRUE(same_bits(part.grads.data() + view.offset, whole.grads.data() + of_whole->offset,
                            view.count))
          << view.name << " with " << freeze[0] << " frozen";
    }
  }
}

TEST_P(SparseGradient, CheckpointingChangesNoBit) {
  const GradientProblem problem(GetParam());
  core::SerialTeam serial;
  PairTeam pair;
  const auto plain = problem.gradient(serial);
  const auto again = problem.gradient(pair, nullptr, {.checkpointing = true});
  EXPECT_TRUE(same_bits(plain.grads.data(), again.grads.data(), plain.grads.size()));
  EXPECT_LT(again.bytes, plain.bytes);
}

TEST_P(SparseGradient, AdaptersOfTheAttentionLearnBesideFrozenExperts) {
  const GradientProblem problem(GetParam());
  TrainedSet set;
  set.lora.rank = 4;
  const auto layout = trained_layout(GetParam(), set, "actor");
  ASSERT_TRUE(layout);
  for (std::int64_t layer = 0; layer < GetParam().layers; ++layer) {
    const auto& adapters = layout.value()->adapters[static_cast<std::size_t>(layer)];
    EXPECT_EQ(adapters[index_of(Linear::kQ)].rank, 4);
    EXPECT_EQ(adapters[index_of(Linear::kDown)].rank, GetParam().moe.sparse(layer) ? 0 : 4);
  }
}

INSTANTIATE_TEST_SUITE_P(Specs,
                         SparseGradient,
                         testing::Values(mixtral_spec(), qwen_moe_spec()),
                         [](const auto& tested) { return tested.param.architecture; });

}  // namespace
}  // namespace troupe::model
