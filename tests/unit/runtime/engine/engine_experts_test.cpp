// Engines on a model with experts: tokens and log-probs are those of samples generated alone,
// whatever shares a step; and the experts of each token come back when they are asked for.
#include "runtime/async/cpu_pool.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/moe_forward.hpp"
#include "tests/unit/runtime/engine/naive_generator.hpp"

#include <gtest/gtest.h>

namespace troupe::engine {
namespace {

// Experts in layers 0 and 2, a dense network in layer 1.
model::ModelSpec expert_spec() {
  model::ModelSpec spec = tiny_spec();
  spec.architecture = "Qwen2MoeForCausalLM";
  spec.layers = 3;
  spec.moe.experts = 6;
  spec.moe.experts_per_token = 2;
  spec.moe.ffn = 24;
  spec.moe.shared_ffn = 20;
  spec.moe.dense_layers = {1};
  return spec;
}

Weights expert_weights(const model::ModelSpec& spec = expert_spec()) {
  model::ParamStore params(spec);
  model::randomise(params, 5, 0.25f);
  return pack(params, 3);
}

// What the rows that predicted a sample's tokens chose, the whole sequence computed at once.
std::vector<std::uint16_t> routed_alone(const model::PackedWeights& weights,
                                        const std::vector<std::int32_t>& prompt,
                                        const std::vector<std::int32_t>& response) {
  const model::ModelSpec& spec = weights.spec();
  model::SampleGroup group{prompt, {response}};
  model::GroupPlan plan;
  EXPECT_TRUE(model::build_group_plan({&group, 1}, spec, 1, plan));
  model::ForwardScratch scratch;
  scratch.keep_routed = true;
  const auto rows = static_cast<std::int64_t>(response.size());
  EXPECT_EQ(std::ssize(plan.plan.logit_rows), rows);
  scratch.reserve(core::host_memory(), spec, plan.plan.rows(), rows);
  model::KvPool pool(spec, 1, 32);
  model::forward_hidden(core::Team{}, weights, plan.plan, pool, scratch);
  return {scratch.routed.data(), scratch.routed.data() + rows * model::routed_width(spec)};
}

TEST(EngineExperts, TheChoicesOfEachTokenComeBack) {
  const Weights weights = expert_weights();
  auto requests = varied_requests(3, 12);
  requests[4].prompt = requests[3].prompt;  // found in the prefix index, or shared
  for (std::size_t i = 0; i < requests.size(); ++i)
    requests[i].sampling.routed_experts = i % 3 != 0;
  async::CpuPool pool(2);
  auto engine = make_engine(weights, limits_of(8, 24, 12), pool);
  const Samples samples = run_all(*engine, requests);
  EXPECT_GT(engine->counters().preempted, 0u);
  for (const auto& [key, sample] : samples) {
    const GroupRequest& request = requests[key.first - 1];
    if (!request.sampling.routed_experts) {
      EXPECT_TRUE(sample.routed_experts.empty());
      continue;
    }
    EXPECT_EQ(sample.routed_experts.size(), sample.tokens.size() * 2 * 2);
    EXPECT_EQ(sample.routed_experts, routed_alone(*weights, request.prompt, sample.tokens));
  }
}

TEST(EngineExperts, AModelWithoutExpertsCannotSayWhichWereChosen) {
  core::SerialTeam serial;
  auto engine = make_engine(tiny_weights(), limits_of(8, 64, 64), serial);
  GroupRequest request = request_of(1, {1, 2, 3});
  request.sampling.routed_experts = true;
  const auto taken = engine->submit(request);
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("this model has no experts"), std::string::npos);
}

TEST(EngineExperts, EverySampleIsTheOneGeneratedAlone) {
  const Weights weights = expert_weights();
  const auto requests = varied_requests(11, 12);
  async::CpuPool pool(2);
  // Chunks of a few rows and blocks for a part of the samples: prompts are cut, samples preempted.
  auto engine = make_engine(weights, limits_of(8, 24, 12), pool);
  expect_same(run_all(*engine, requests), naive_all(*weights, requests));
  EXPECT_GT(engine->counters().preempted, 0u);
}

}  // namespace
}  // namespace troupe::engine
