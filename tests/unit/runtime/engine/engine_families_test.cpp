// The engine on models of the other families: windows, norms of heads and branches, soft caps,
// fused tensors. Whatever the batch, the chunks and preemption, each sample has the bits of a naive
// generator.
#include "tests/unit/runtime/engine/naive_generator.hpp"
#include "tests/unit/runtime/model/test_models.hpp"

#include <string>

namespace troupe::engine {
namespace {

model::ModelSpec mistral_spec() {
  model::ModelSpec spec = model::tiny_spec();
  spec.architecture = "MistralForCausalLM";
  spec.window = 21;
  spec.sliding = {true, true};
  return spec;
}

model::ModelSpec long_mistral_spec() {
  model::ModelSpec spec = mistral_spec();
  spec.vocab = tiny_spec().vocab;
  spec.context = 320;
  return spec;
}

class EngineFamilies : public testing::TestWithParam<model::ModelSpec> {};

TEST_P(EngineFamilies, SamplesHaveTheBitsOfANaiveGenerator) {
  model::ModelSpec spec = GetParam();
  spec.vocab = tiny_spec().vocab;
  model::ParamStore params(spec);
  model::randomise(params, 4, 0.25f);
  const Weights weights = pack(params, 3);
  std::vector<GroupRequest> requests = varied_requests(11, 5);
  core::Rng rng(5);
  for (std::uint64_t id = 6; id < 12; ++id)  // long enough to run out of blocks together
    requests.push_back(request_of(id, random_prompt(rng, 14 + id), 2, 28));
  const Samples expected = naive_all(*weights, requests);
  core::SerialTeam one;
  model::PairTeam two;
  auto roomy = make_engine(weights, limits_of(16, 64, 200), two);
  expect_same(run_all(*roomy, requests), expected);
  EXPECT_EQ(roomy->counters().preempted, 0u);
  auto chunked = make_engine(weights, limits_of(8, 13, 200), one);
  expect_same(run_all(*chunked, requests), expected);
  auto tight = make_engine(weights, limits_of(64, 96, 12), one);
  expect_same(run_all(*tight, requests), expected);
  EXPECT_GT(tight->counters().preempted, 0u);
}

// Seven blocks are 112 positions: a window of 21, a step of 20 rows and one block to spare go in.
TEST(EngineWindow, ALongResponseGoesThroughASmallPool) {
  model::ModelSpec spec = long_mistral_spec();
  model::ParamStore params(spec);
  model::randomise(params, 4, 0.25f);
  const Weights weights = pack(params, 3);
  core::SerialTeam one;
  core::Rng rng(3);
  const std::vector<GroupRequest> requests = {request_of(1, random_prompt(rng, 40), 1, 260),
                                              request_of(2, random_prompt(rng, 70), 2, 200)};
  const Samples expected = naive_all(*weights, requests);
  auto small = make_engine(weights, limits_of(4, 20, 7), one);
  expect_same(run_all(*small, requests), expected);
  EXPECT_EQ(small->counters().free_blocks, 7);
  // One layer that sees everything, and nothing may be given back.
  spec.sliding = {true, false};
  model::ParamStore wide(spec);
  model::randomise(wide, 4, 0.25f);
  auto whole = make_engine(pack(wide, 3), limits_of(4, 20, 7), one);
  const auto refused = whole->submit(requests[0]);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kResources);
  EXPECT_NE(refused.error().message.find("need 19 blocks of 16 tokens"), std::string::npos)
      << refused.error().message;
}

// Where every sample is set back in the middle, too: with other weights, and by a pause.
TEST(EngineWindow, WhatComesBackFitsIntoTheSmallPoolToo) {
  model::ModelSpec spec = long_mistral_spec();
  model::ParamStore params(spec);
  model::randomise(params, 4, 0.25f);
  core::SerialTeam one;
  core::Rng rng(3);
  const GroupRequest request = request_of(1, random_prompt(rng, 70), 3, 180);
  const Samples expected = naive_all(*pack(params, 3), {request});
  for (const bool prefix_cache : {true, false}) {
    EngineLimits limits = limits_of(4, 20, 8);
    limits.enable_prefix_caching = prefix_cache;
    auto engine = make_engine(pack(params, 3), limits, one);
    ASSERT_TRUE(engine->submit(request));
    Samples samples;
    for (int step = 1; !engine->idle() && !testing::Test::HasFatalFailure(); ++step) {
      step_into(*engine, samples);
      if (step % 60 == 0) {
        ASSERT_TRUE(engine->set_weights(pack(params, 3), KvAction::kRecompute));
      }
      if (step % 60 == 30) {
        engine->pause(PauseMode::kRecompute);
        ASSERT_TRUE(engine->resume());
      }
    }
    expect_same(samples, expected);
    EXPECT_EQ(engine->counters().free_blocks, 8);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Specs,
    EngineFamilies,
    testing::Values(mistral_spec(), model::qwen3_spec(), model::phi3_spec(), model::gemma_spec()),
    [](const auto& i) { return i.param.architecture; });

}  // namespace
}  // namespace troupe::engine
