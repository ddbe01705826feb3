// The load-balancing loss by hand, its slope by differences, and the bits of whole models that are
// trained with it. Against transformers: tests/oracle/model_gradients_test.py.
#include "runtime/model/moe_balance.hpp"

#include "runtime/model/moe_grad.hpp"
#include "runtime/model/trained_layout.hpp"
#include "tests/unit/runtime/model/gradient_problem.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::model {
namespace {

MoeSpec spec_of(std::int64_t experts, std::int64_t k) {
  MoeSpec spec;
  spec.experts = experts;
  spec.experts_per_token = k;
  return spec;
}

struct Rows {
  std::vector<float> p;
  std::vector<std::int32_t> expert;
  Routing view(std::int64_t lds) { return {p.data(), lds, expert.data(), nullptr, nullptr}; }
};

// Two layers, three rows in all, two of three experts chosen: f = (3, 1, 2) / 3,
// P = (1.25, 0.75, 1) / 3, loss = 3 (3.75 + 0.75 + 2) / 9 = 13/6; dloss / dp_e = 3 f_e / 3.
TEST(LoadBalance, IsTheHandWorkedValue) {
  const MoeSpec spec = spec_of(3, 2);
  Rows first{{0.5f, 0.25f, 0.25f, 0.5f, 0.125f, 0.375f}, {0, 1, 0, 2}};
  Rows second{{0.25f, 0.375f, 0.375f}, {0, 2}};
  LoadBalance balance;
  balance.start(spec, 0.5);
  balance.add({}, spec, first.view(3), 2);
  balance.count(2);
  balance.add({}, spec, second.view(3), 1);
  balance.count(1);
  balance.finish();
  EXPECT_DOUBLE_EQ(balance.loss(), 13.0 / 6);
  ASSERT_NE(balance.slope(), nullptr);
  EXPECT_FLOAT_EQ(balance.slope()[0], 0.5f);
  EXPECT_FLOAT_EQ(balance.slope()[1], 0.5f / 3);
  EXPECT_FLOAT_EQ(balance.slope()[2], 1.0f / 3);
}

TEST(LoadBalance, EqualUseGivesTheExpertsOfAToken) {
  const MoeSpec spec = spec_of(4, 2);
  Rows rows{std::vector<float>(8, 0.25f), {0, 1, 2, 3}};
  LoadBalance balance;
  balance.start(spec, 1);
  balance.add({}, spec, rows.view(4), 2);
  balance.count(2);
  balance.finish();
  EXPECT_DOUBLE_EQ(balance.loss(), 2);
}

TEST(LoadBalance, NothingIsDoneWithoutAWeightAndAStartForgets) {
  const MoeSpec spec = spec_of(2, 1);
  LoadBalance balance;
  Rows row{{0.75f, 0.25f}, {0}};
  for (const double expected : {1.5, 1.5}) {
    balance.start(spec, 1);
    balance.add({}, spec, row.view(2), 1);
    balance.count(1);
    balance.finish();
    EXPECT_DOUBLE_EQ(balance.loss(), expected);
  }
  balance.start(spec, 0);
  EXPECT_FALSE(balance.on());
  EXPECT_EQ(balance.slope(), nullptr);
  EXPECT_EQ(balance.loss(), 0);
}

// sum_e b_e p_e + sum_i c_i w_i of one row, in double.
double value_of(const MoeSpec& spec,
                const std::vector<double>& logits,
                const std::vector<std::int32_t>& chosen,
                const std::vector<float>& c,
                const std::vector<float>& b) {
  double all = 0, of_chosen = 0, chosen_part = 0, out = 0;
  for (const double z : logits)
    all += std::exp(z);
  for (std::size_t e = 0; e < logits.size(); ++e)
    out += static_cast<double>(b[e]) * std::exp(logits[e]) / all;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const double p = std::exp(logits[static_cast<std::size_t>(chosen[i])]) / all;
    of_chosen += p;
    chosen_part += static_cast<double>(c[i]) * p;
  }
  return out + (spec.norm_topk ? chosen_part / of_chosen : chosen_part);
}

TEST(RoutingBackward, AddsTheSlopeOfTheBalanceInTheLogits) {
  for (const bool norm_topk : {false, true}) {
    MoeSpec spec = spec_of(5, 3);
    spec.norm_topk = norm_topk;
    const std::vector<double> logits = {0.3, -1.0, 1.2, 0.0, 0.8};
    const std::vector<float> dw = {0.7f, -0.4f, 1.5f}, b = {0.9f, 0.1f, -0.5f, 0.3f, 2.0f};
    std::vector<float> p(logits.begin(), logits.end()), weight(3);
    std::vector<std::int32_t> chosen(3), place(3);
    route_rows(spec, {p.data(), 5, chosen.data(), weight.data(), place.data()}, 0, 1);
    routing_backward(spec, p.data(), chosen.data(), weight.data(), dw.data(), b.data());
    for (std::size_t e = 0; e < 5; ++e) {
      std::vector<double> up = logits, down = logits;
      up[e] += 1e-5;
      down[e] -= 1e-5;
      const double slope =
          (value_of(spec, up, chosen, dw, b) - value_of(spec, down, chosen, dw, b)) / 2e-5;
      EXPECT_NEAR(static_cast<double>(p[e]), slope, 1e-6) << "expert " << e << ", " << norm_topk;
    }
  }
}

constexpr double kWeight = 3.0;

class Balanced : public testing::TestWithParam<ModelSpec> {
 protected:
  // The gradients with the balance in, by a tape of its own.
  struct Outcome {
    ParamStore grads;
    double loss = 0;
  };
  static Outcome gradient(const GradientProblem& problem,
                          core::TeamRunner& team,
                          TapeOptions options = {},
                          std::shared_ptr<const ParamLayout> layout = nullptr) {
    if (layout == nullptr) layout = problem.model.params.shared_layout();
    Outcome out{ParamStore(problem.model.params.spec(), layout)};
    TrainTape tape(team, problem.model.params, &out.grads, options);
    tape.set_balance(kWeight);
    const GroupPlan plan = problem.plan(team.size());
    problem.forward(tape, plan);
    problem.backward(tape);
    out.loss = tape.balance_loss();
    return out;
  }
};

TEST_P(Balanced, TeamsAndCheckpointingChangeNoBit) {
  const GradientProblem problem(GetParam());
  core::SerialTeam serial;
  PairTeam pair;
  const Outcome one = gradient(problem, serial);
  for (const bool checkpointing : {false, true}) {
    const Outcome two = gradient(problem, pair, {.checkpointing = checkpointing});
    EXPECT_EQ(one.loss, two.loss);
    EXPECT_TRUE(same_bits(one.grads.data(), two.grads.data(), one.grads.size()));
  }
  const auto without = problem.gradient(serial);
  EXPECT_FALSE(same_bits(one.grads.data(), without.grads.data(), one.grads.size()));
}

// The difference that the weight makes in the routers is the loss' slope along it.
TEST_P(Balanced, RoutersAgreeWithFiniteDifferences) {
  GradientProblem problem(GetParam());
  core::SerialTeam serial;
  const Outcome with = gradient(problem, serial);
  const auto without = problem.gradient(serial);
  const GroupPlan plan = problem.plan(1);
  TrainTape tape(serial, problem.model.params, nullptr);
  tape.set_balance(kWeight);
  for (std::int64_t layer = 0; layer < GetParam().layers; ++layer) {
    if (!GetParam().moe.sparse(layer)) continue;
    const ParamView* view =
        problem.model.params.layout().find(router_name(GetParam().moe.names, layer));
    ASSERT_NE(view, nullptr);
    float* weights = problem.model.params.data() + view->offset;
    const std::vector<float> saved(weights, weights + view->count);
    std::vector<double> d;
    double length = 0;
    for (std::int64_t i = view->offset; i < view->offset + view->count; ++i) {
      d.push_back(static_cast<double>(with.grads.data()[i]) -
                  static_cast<double>(without.grads.data()[i]));
      length += d.back() * d.back();
    }
    length = std::sqrt(length);
    ASSERT_GT(length, 1e-3);
    const auto at = [&](double by) {
      for (std::size_t i = 0; i < d.size(); ++i)
        weights[i] = static_cast<float>(static_cast<double>(saved[i]) + by * d[i] / length);
      problem.model.repack();
      problem.forward(tape, plan);
      std::copy(saved.begin(), saved.end(), weights);
      return kWeight * tape.balance_loss();
    };
    // So small that no choice flips.
    const double h = 2e-4;
    EXPECT_NEAR((at(h) - at(-h)) / (2 * h) / length, 1.0, 1e-2) << "layer " << layer;
  }
}

TEST_P(Balanced, FrozenLayersCountInTheLoss) {
  const GradientProblem problem(GetParam());
  core::SerialTeam serial;
  TrainedSet set;
  set.freeze = {"layers.0.", "embed_tokens"};
  const auto layout = trained_layout(GetParam(), set, "actor");
  ASSERT_TRUE(layout);
  const Outcome whole = gradient(problem, serial);
  const Outcome part = gradient(problem, serial, {}, layout.value());
  EXPECT_EQ(part.loss, whole.loss);
  for (const ParamView& view : part.grads.layout().views) {
    const ParamView* of_whole = whole.grads.layout().find(view.name);
    ASSERT_TRUE(same_bits(part.grads.data() + view.offset, whole.grads.data() + of_whole->offset,
                          view.count))
        << view.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Specs,
                         Balanced,
                         testing::Values(mixtral_spec(), qwen_moe_spec()),
                         [](const auto& spec) { return spec.param.architecture; });

}  // namespace
}  // namespace troupe::model
