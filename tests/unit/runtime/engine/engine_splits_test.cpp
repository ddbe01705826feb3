// An engine on a GPU in `bf16-compute`, where keys and values are bfloat16 and attention is
// computed in splits: the bits of scorer and trainer, whatever the batch, the chunks and the
// length; half the bytes for keys and values.
#include "runtime/model/group_plan.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/train_tape.hpp"
#include "tests/unit/runtime/engine/tiny_engine.hpp"
#include "tests/unit/runtime/model/device_team.hpp"

namespace troupe::engine {
namespace {

using kernels::PanelDtype;

class EngineOnDeviceInSplits : public model::OnDevice<testing::Test> {
 protected:
  void SetUp() override {
    model::OnDevice<testing::Test>::SetUp();
    if (IsSkipped()) return;
    if (dynamic_cast<kernels::cuda::DeviceTeam*>(&device()) == nullptr)
      GTEST_SKIP() << "TROUPE_CUDA_LIBRARY names no library of device kernels";
  }
  Weights packed(const model::ModelSpec& spec, PanelDtype dtype = PanelDtype::kBf16Compute) {
    model::ParamStore params(spec);
    model::randomise(params, 1, 0.25f);
    auto made = std::make_shared<model::PackedWeights>(spec, dtype, memory());
    device().run([&](core::Team member) { made->fill(member, params, 0); });
    return made;
  }
  // A layer of two heads that share keys, with room for three splits.
  static model::ModelSpec long_spec() {
    model::ModelSpec spec = tiny_spec();
    spec.layers = 1;
    spec.hidden = spec.ffn = 16;
    spec.heads = 2;
    spec.kv_heads = 1;
    spec.head_dim = 16;
    spec.vocab = 61;
    spec.context = 2300;
    return spec;
  }
  // The log-probs of all samples' tokens, by group, from a scorer or from a trainer's forward pass.
  std::vector<float> scored(const model::PackedWeights& weights,
                            const std::vector<GroupRequest>& requests,
                            const Samples& samples,
                            bool by_trainer) {
    std::vector<model::SampleGroup> groups;
    for (const GroupRequest& request : requests) {
      groups.push_back({.prompt = request.prompt, .responses = {}});
      for (std::int32_t i = 0; i < request.samples; ++i)
        groups.back().responses.emplace_back(samples.at({request.id.value, i}).tokens);
    }
    model::GroupPlan plan;
    EXPECT_TRUE(model::build_group_plan(groups, weights.spec(), 1, plan));
    plan.plan.place(memory());
    if (!by_trainer) return model::score_logprobs(device(), weights, plan.plan, plan.targets, 1.0f);
    model::ParamStore params(weights.spec());
    model::randomise(params, 1, 0.25f);
    const model::ParamStore there = params.to(memory());
    model::TrainTape tape(device(), there, nullptr);
    tape.begin(weights, plan.plan);
    tape.forward_embedding();
    for (std::int64_t layer = 0; layer < weights.spec().layers; ++layer)
      tape.forward_layer(layer);
    tape.forward_final_norm();
    tape.head().forward(plan.targets, 1.0f, false);
    return tape.head().logprobs();
  }
  static std::vector<float> logprobs_of(const Samples& samples) {
    std::vector<float> all;
    for (const auto& [key, sample] : samples)
      all.insert(all.end(), sample.logprobs.begin(), sample.logprobs.end());
    return all;
  }
};

// Samples begin before a split's end and go on behind it, in batches of several sizes, in prompts
// that are read whole and in chunks.
TEST_F(EngineOnDeviceInSplits, EngineScorerAndTrainerAgreeAcrossSplits) {
  const Weights weights = packed(long_spec());
  core::Rng rng(3);
  const std::vector<GroupRequest> requests{request_of(1, random_prompt(rng, 1021, 61), 2, 6),
                                           request_of(2, random_prompt(rng, 40, 61), 1, 4),
                                           request_of(3, random_prompt(rng, 2047, 61), 1, 4)};
  auto at_once = make_engine(weights, limits_of(8, 4096, 400), device());
  const Samples samples = run_all(*at_once, requests);
  auto in_chunks = make_engine(weights, limits_of(2, 700, 400), device());
  Samples shorter = samples;
  shorter.erase({3, 0});
  expect_same(run_all(*in_chunks, {requests[0], requests[1]}), shorter);
  const std::vector<float> logprobs = logprobs_of(samples);
  EXPECT_EQ(logprobs.size(), 2u * 6 + 4 + 4);
  EXPECT_TRUE(same_bits(scored(*weights, requests, samples, false), logprobs));
  EXPECT_TRUE(same_bits(scored(*weights, requests, samples, true), logprobs));
}

// Heads whose rows in the pool are no multiple of 16 bytes; cached, forked and preempted samples.
TEST_F(EngineOnDeviceInSplits, BatchesChunksAndPreemptionChangeNoBit) {
  const Weights weights = packed(tiny_spec());
  std::vector<GroupRequest> requests = varied_requests(7, 4, 3, 30);
  core::Rng rng(5);
  const std::vector<std::int32_t> prompt = random_prompt(rng, 40);
  for (std::uint64_t id = 7; id <= 9; ++id)
    requests.push_back(request_of(id, prompt, 2, 24));
  auto wide = make_engine(weights, limits_of(24, 96, 200), device());
  const Samples samples = run_all(*wide, requests);
  auto narrow = make_engine(weights, limits_of(8, 17, 14), device());
  expect_same(run_all(*narrow, requests), samples);
  EXPECT_GT(narrow->counters().preempted, 0u);
  EXPECT_GT(wide->counters().prefix_hit_tokens, 0u);
  EXPECT_GT(wide->counters().replayed, 0u);
  // Another arithmetic than that of f32 keys.
  auto exact =
      make_engine(packed(tiny_spec(), PanelDtype::kBf16), limits_of(24, 96, 200), device());
  const Samples of_exact = run_all(*exact, {requests[0]});
  EXPECT_NE(of_exact.at({1, 0}).logprobs, samples.at({1, 0}).logprobs);
}

TEST_F(EngineOnDeviceInSplits, ThePoolHoldsTwiceAsManyBlocks) {
  EngineLimits limits = limits_of(64, 64, 0);
  limits.kv_cache_gb.bytes = 1 << 20;
  auto exact = make_engine(packed(tiny_spec(), PanelDtype::kBf16), limits, device());
  auto fast = make_engine(packed(tiny_spec()), limits, device());
  EXPECT_EQ(exact->counters().total_blocks, 204);  // of 2 layers x 2 x 20 x 16 x 4 bytes
  EXPECT_EQ(fast->counters().total_blocks, 409);
  const auto report = fast->sleep({.weights = false, .kv = true});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->kv.before, 410u * 2560);  // with the spare block
}

TEST_F(EngineOnDeviceInSplits, SleepChangesNoBit) {
  const Weights weights = packed(tiny_spec());
  core::Rng rng(3);
  const GroupRequest request = request_of(1, random_prompt(rng, 20), 2, 16);
  const auto run = [&](bool sleeps) {
    auto engine = make_engine(weights, limits_of(4, 64, 30), device());
    Samples samples;
    EXPECT_TRUE(engine->submit(request));
    for (int i = 0; i < 6; ++i)
      step_into(*engine, samples);
    if (sleeps) {
      EXPECT_TRUE(engine->sleep({.weights = false, .kv = true}));
      EXPECT_TRUE(engine->wake({.kv = true}));
    }
    while (!engine->idle() && !HasFatalFailure())
      step_into(*engine, samples);
    return samples;
  };
  expect_same(run(true), run(false));
}

TEST_F(EngineOnDeviceInSplits, RefusesWeightsWithOtherKeys) {
  auto engine = make_engine(packed(tiny_spec()), limits_of(4, 64, 30), device());
  const auto refused = engine->set_weights(packed(tiny_spec(), PanelDtype::kBf16), KvAction::kKeep);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("bf16"), std::string::npos);
  EXPECT_TRUE(engine->set_weights(packed(tiny_spec()), KvAction::kKeep));
}

}  // namespace
}  // namespace troupe::engine
