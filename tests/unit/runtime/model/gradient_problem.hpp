// One batch with a loss, for tests that compare the gradients of different ways to train the same
// model. The loss is sum_i c_i logprob_i (or c_i value_i for a score head).
#pragma once

#include "runtime/model/group_plan.hpp"
#include "runtime/model/train_tape.hpp"
#include "tests/unit/runtime/model/same_bits.hpp"
#include "tests/unit/runtime/model/test_models.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace troupe::model {

struct GradientProblem {
  explicit GradientProblem(const ModelSpec& spec, std::uint64_t seed = 5)
      : model(spec, 0.15f, seed) {
    prompts = {some_tokens(21, spec.vocab, 1), some_tokens(16, spec.vocab, 2)};
    for (int i = 0; i < 4; ++i)
      responses.push_back(some_tokens(3 + 9 * i, spec.vocab, 10 + i));
    groups = {{prompts[0], {responses[0], responses[3]}},
              {prompts[1], {responses[1], responses[2]}}};
  }
  GroupPlan plan(int members) const {
    GroupPlan out;
    EXPECT_TRUE(build_group_plan(groups, model.params.spec(), members, out));
    return out;
  }

  static std::vector<float> coefficients(std::size_t count) {
    std::vector<float> c;
    for (std::size_t i = 0; i < count; ++i)
      c.push_back(0.3f + 0.1f * static_cast<float>(i % 7));
    return c;
  }

  void forward(TrainTape& tape, const GroupPlan& plan) const { forward(tape, plan, model.weights); }
  void forward(TrainTape& tape, const GroupPlan& plan, const PackedWeights& weights) const {
    tape.begin(weights, plan.plan);
    tape.forward_embedding();
    for (std::int64_t i = 0; i < tape.spec().layers; ++i)
      tape.forward_layer(i);
    tape.forward_final_norm();
    if (tape.spec().head == HeadKind::kScore) {
      tape.head().forward_values();
    } else {
      tape.head().forward(plan.targets, 0.8f, false);
    }
  }

  void backward(TrainTape& tape) const {
    if (tape.spec().head == HeadKind::kScore) {
      tape.head().backward_values(coefficients(tape.head().values().size()).data());
    } else {
      tape.head().backward(coefficients(tape.head().logprobs().size()).data(), nullptr);
    }
    tape.backward_final_norm();
    for (std::int64_t i = tape.spec().layers; i-- > 0;)
      tape.backward_layer(i);
    tape.backward_embedding();
  }

  double loss() const {
    core::SerialTeam team;
    TrainTape tape(team, model.params, nullptr);
    const GroupPlan kept = plan(1);
    forward(tape, kept);
    const auto& terms =
        tape.spec().head == HeadKind::kScore ? tape.head().values() : tape.head().logprobs();
    const auto c = coefficients(terms.size());
    double sum = 0;
    for (std::size_t i = 0; i < c.size(); ++i)
      sum += static_cast<double>(c[i]) * static_cast<double>(terms[i]);
    return sum;
  }

  struct Outcome {
    ParamStore grads;
    std::uint64_t bytes = 0;  // of the tape
  };
  // Null `layout`: everything is trained.
  Outcome gradient(core::TeamRunner& team,
                   std::shared_ptr<const ParamLayout> layout = nullptr,
                   TapeOptions options = {}) const {
    if (layout == nullptr) layout = model.params.shared_layout();
    Outcome out{ParamStore(model.params.spec(), layout)};
    TrainTape tape(team, model.params, &out.grads, options);
    const GroupPlan kept = plan(team.size());
    forward(tape, kept);
    backward(tape);
    out.bytes = tape.bytes();
    return out;
  }

  TestModel model;
  std::vector<std::vector<std::int32_t>> prompts, responses;
  std::vector<SampleGroup> groups;
};

}  // namespace troupe::model
