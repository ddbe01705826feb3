// The autograd nodes carry the tape's gradients unchanged.
#include "runtime/model/score.hpp"
#include "runtime/model/train_logprobs.hpp"
#include "runtime/model/train_tape.hpp"
#include "tests/unit/runtime/model/same_bits.hpp"
#include "tests/unit/runtime/model/test_models.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace troupe::model {
namespace {

struct Batch {
  explicit Batch(const ModelSpec& spec, int salt = 0) {
    prompt = some_tokens(19, spec.vocab, salt);
    for (int i = 1; i < 4; ++i)
      responses.push_back(some_tokens(7 * i, spec.vocab, salt + i));
    const SampleGroup group{prompt, {responses[0], responses[1], responses[2]}};
    EXPECT_TRUE(build_group_plan({&group, 1}, spec, 1, plan));
  }
  std::vector<std::int32_t> prompt;
  std::vector<std::vector<std::int32_t>> responses;
  GroupPlan plan;
};

TEST(TrainForward, GradientsAreTheTapes) {
  const TestModel model(qwen_spec());
  const Batch batch(qwen_spec());
  core::SerialTeam team;
  const std::int64_t count = batch.plan.targets.size();
  std::vector<float> c;
  for (std::int64_t i = 0; i < count; ++i)
    c.push_back(0.25f * static_cast<float>(i % 5) - 0.5f);

  ParamStore by_tape = model.params.same_layout();
  TrainTape tape(team, model.params, &by_tape);
  tape.begin(model.weights, batch.plan.plan);
  tape.forward_embedding();
  for (std::int64_t i = 0; i < 2; ++i)
    tape.forward_layer(i);
  tape.forward_final_norm();
  tape.head().forward(batch.plan.targets, 0.9f, true);
  const std::vector<float> entropy_grad(c.size(), 0.125f);
  tape.head().backward(c.data(), entropy_grad.data());
  tape.backward_final_norm();
  for (std::int64_t i = 2; i-- > 0;)
    tape.backward_layer(i);
  tape.backward_embedding();

  ParamStore by_graph = model.params.same_layout();
  TrainForward forward(team, model.params, &by_graph);
  const TokenLogprobs out =
      forward.logprobs(model.weights, batch.plan.plan, batch.plan.targets, 0.9f, true);
  ASSERT_EQ(out.logprobs.numel(), count);
  EXPECT_TRUE(same_bits(out.logprobs.data_ptr<float>(), tape.head().logprobs().data(), count));
  EXPECT_TRUE(same_bits(out.entropies.data_ptr<float>(), tape.head().entropies().data(), count));
  const at::Tensor weights = at::from_blob(c.data(), {count}, at::kFloat).clone();
  const at::Tensor loss = (out.logprobs * weights).sum() + (out.entropies * 0.125).sum();
  loss.backward();
  EXPECT_TRUE(same_bits(by_tape.data(), by_graph.data(), by_graph.size()));
  EXPECT_GT(forward.bytes(), 0u);
}

TEST(TrainForward, MicroBatchesReuseTheMemoryAndAddUp) {
  const TestModel model(tiny_spec());
  const Batch first(tiny_spec(), 1), second(tiny_spec(), 50);
  core::SerialTeam team;
  const auto gradient = [&](std::vector<const Batch*> batches) {
    ParamStore grads = model.params.same_layout();
    TrainForward forward(team, model.params, &grads);
    for (const Batch* batch : batches) {
      const auto out =
          forward.logprobs(model.weights, batch->plan.plan, batch->plan.targets, 1.0f, false);
      EXPECT_FALSE(out.entropies.defined());
      out.logprobs.sum().backward();
    }
    return grads;
  };
  const ParamStore both = gradient({&first, &second});
  const ParamStore again = gradient({&first, &second});
  const ParamStore a = gradient({&first}), b = gradient({&second});
  EXPECT_TRUE(same_bits(both.data(), again.data(), both.size()));
  for (std::int64_t i = 0; i < both.size(); ++i) {
    ASSERT_NEAR(both.data()[i], a.data()[i] + b.data()[i],
                2e-5f + 1e-4f * std::abs(both.data()[i]));
  }
}

TEST(TrainForward, EntropyAloneHasAGradient) {
  const TestModel model(tiny_spec());
  const Batch batch(tiny_spec());
  core::SerialTeam team;
  ParamStore grads = model.params.same_layout();
  TrainForward forward(team, model.params, &grads);
  const auto out = forward.logprobs(model.weights, batch.plan.plan, batch.plan.targets, 1.0f, true);
  out.entropies.mean().backward();
  double squares = 0;
  for (std::int64_t i = 0; i < grads.size(); ++i) {
    squares += static_cast<double>(grads.data()[i]) * static_cast<double>(grads.data()[i]);
  }
  EXPECT_GT(squares, 0);
}

TEST(TrainForward, WithoutAStoreNothingRequiresGrad) {
  const TestModel model(tiny_spec());
  const Batch batch(tiny_spec());
  core::SerialTeam team;
  TrainForward forward(team, model.params, nullptr);
  const auto out =
      forward.logprobs(model.weights, batch.plan.plan, batch.plan.targets, 1.0f, false);
  EXPECT_FALSE(out.logprobs.requires_grad());
  const auto scored =
      score_logprobs(team, model.weights, batch.plan.plan, batch.plan.targets, 1.0f);
  EXPECT_TRUE(same_bits(out.logprobs.data_ptr<float>(), scored.data(), out.logprobs.numel()));
}

}  // namespace
}  // namespace troupe::model
