// An engine on a device gives the samples of one on the host, bit for bit: on the arena, where all
// draws are the host's and host code that touches a number there faults, and on a GPU (the emulated
// one unless TROUPE_CUDA_LIBRARY names another), which draws every token itself and replays
// recorded steps.
#include "runtime/engine/step_plan.hpp"
#include "tests/unit/runtime/engine/tiny_engine.hpp"
#include "tests/unit/runtime/model/device_team.hpp"
#include "tests/unit/runtime/model/test_models.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <limits>
#include <string>

namespace troupe::engine {
namespace {

enum class Where { kArena, kGpu };

// Null when there is no GPU; then `why` says so.
std::unique_ptr<core::TeamRunner> make_team(Where where, std::string& why) {
  if (where == Where::kArena) return std::make_unique<model::ArenaTeam>();
  return model::make_emulated_team(why);
}

class EngineOnDevice : public testing::TestWithParam<Where> {
 protected:
  void SetUp() override {
    std::string why;
    device_ = make_team(GetParam(), why);
    if (!device_) GTEST_SKIP() << why;
  }

  static model::ParamStore params(std::uint64_t seed = 1) {
    model::ParamStore made(tiny_spec());
    model::randomise(made, seed, 0.25f);
    return made;
  }
  Weights there(std::uint64_t seed = 1,
                core::Version version = 0,
                kernels::PanelDtype dtype = kernels::PanelDtype::kF32) {
    return filled(*device_, seed, version, dtype);
  }
  Weights here(std::uint64_t seed = 1,
               core::Version version = 0,
               kernels::PanelDtype dtype = kernels::PanelDtype::kF32) {
    return filled(host_, seed, version, dtype);
  }
  // The same requests on both.
  void expect_equal(const std::vector<GroupRequest>& requests, const EngineLimits& limits) {
    auto on_host = make_engine(here(), limits, host_);
    auto on_device = make_engine(there(), limits, *device_);
    expect_same(run_all(*on_host, requests), run_all(*on_device, requests));
    const EngineCounters a = on_host->counters(), b = on_device->counters();
    EXPECT_EQ(a.steps, b.steps);
    EXPECT_EQ(a.preempted, b.preempted);
    EXPECT_EQ(a.prefix_hit_tokens, b.prefix_hit_tokens);
    last_ = b;
  }
  bool gpu() const { return GetParam() == Where::kGpu; }

  std::unique_ptr<core::TeamRunner> device_;
  core::SerialTeam host_;
  EngineCounters last_;  // of the device's engine

 private:
  static Weights filled(core::TeamRunner& team,
                        std::uint64_t seed,
                        core::Version version,
                        kernels::PanelDtype dtype) {
    const model::ParamStore from = params(seed);
    auto packed = std::make_shared<model::PackedWeights>(tiny_spec(), dtype, team.memory());
    team.run([&](core::Team member) { packed->fill(member, from, version); });
    return packed;
  }
};

INSTANTIATE_TEST_SUITE_P(
    All, EngineOnDevice, testing::Values(Where::kArena, Where::kGpu), [](const auto& tested) {
      return tested.param == Where::kArena ? std::string("Arena") : std::string("Gpu");
    });

TEST_P(EngineOnDevice, GivesTheHostsSamplesOfAllSamplers) {
  expect_equal(varied_requests(7, 9, 3, 30), limits_of(16, 64, 60));
  expect_equal(varied_requests(8, 4, 2, 30), limits_of(3, 17, 40));
}

// One request for each setting that makes a draw more than a plain one, and that setting alone.
TEST_P(EngineOnDevice, EverySettingAloneIsHeeded) {
  std::vector<GroupRequest> requests;
  const auto with = [&](const std::function<void(SamplingParams&)>& change) {
    const std::uint64_t id = requests.size() + 1;
    core::Rng rng(id, 9);
    requests.push_back(request_of(id, random_prompt(rng, 9), 1, 14));
    requests.back().sampling.temperature = 0.3f;  // so that tokens come again
    change(requests.back().sampling);
  };
  with([](SamplingParams& p) { p.repetition_penalty = 3.0f; });
  with([](SamplingParams& p) { p.presence_penalty = 2.0f; });
  with([](SamplingParams& p) { p.frequency_penalty = 2.0f; });
  with([](SamplingParams& p) { p.logit_bias = {{5, 30.0f}}; });
  with([](SamplingParams& p) { p.min_new_tokens = 14; });
  with([](SamplingParams& p) { p.top_k = 2; });
  with([](SamplingParams& p) { p.top_p = 0.2f; });
  with([](SamplingParams& p) { p.min_p = 0.5f; });
  with([](SamplingParams& p) { p.entropies = true; });
  with([](SamplingParams& p) { p.raw_logprobs = true; });
  with([](SamplingParams& p) { p.top_logprobs = 3; });
  std::vector<std::int32_t> ends;  // a third of the vocabulary ends a sample
  for (std::int32_t token = 0; token < tiny_spec().vocab; token += 3)
    ends.push_back(token);
  for (GroupRequest& request : requests)
    if (request.sampling.min_new_tokens == 0) request.sampling.ignore_eos = true;
  auto on_host = make_engine(here(), limits_of(16, 64, 60), host_, ends);
  auto on_device = make_engine(there(), limits_of(16, 64, 60), *device_, ends);
  expect_same(run_all(*on_host, requests), run_all(*on_device, requests));
  if (gpu()) {
    EXPECT_GT(on_device->counters().replayed,
              8u);  // such rows do not keep a step from its recording
  }
}

TEST_P(EngineOnDevice, PlainAndGreedySamplesOverAllBuckets) {
  std::vector<GroupRequest> requests;
  for (std::uint64_t id = 1; id <= 11; ++id) {  // they end one after the other: 11 rows down to 1
    core::Rng rng(id, 3);
    requests.push_back(
        request_of(id, random_prompt(rng, 3 + id % 5), 1, static_cast<std::int32_t>(2 * id)));
    requests.back().sampling.temperature = id % 3 == 0 ? 0.0f : 0.9f;
  }
  expect_equal(requests, limits_of(11, 64, 60));
  // The first step draws all first tokens. Of the 21 that follow, the first of each bucket (11, 8,
  // 4, 2, 1) runs as it is.
  if (gpu()) {
    EXPECT_EQ(last_.replayed, 16u);
  }
  if (!gpu()) {
    EXPECT_EQ(last_.replayed, 0u);
  }
}

TEST_P(EngineOnDevice, PreemptedAndCachedSamplesComeBack) {
  core::Rng rng(5);
  const std::vector<std::int32_t> prompt = random_prompt(rng, 40);
  std::vector<GroupRequest> requests;
  for (std::uint64_t id = 1; id <= 4; ++id)
    requests.push_back(request_of(id, prompt, 2, 24));
  expect_equal(requests, limits_of(8, 32, 14));
  EXPECT_GT(last_.preempted, 0u);
  EXPECT_GT(last_.prefix_hit_tokens, 0u);
}

TEST_P(EngineOnDevice, ScoresPrompts) {
  core::Rng rng(6);
  GroupRequest request = request_of(1, random_prompt(rng, 45), 2, 3);
  request.sampling.prompt_logprobs = true;
  request.sampling.top_logprobs = 2;
  // A batch of head rows holds 4: the prompt's take many batches, and a sample that is drawn on the
  // device comes behind them.
  const std::vector<GroupRequest> both = {request, request_of(2, random_prompt(rng, 10), 1, 3)};
  auto on_host = make_engine(here(), limits_of(4, 64, 60), host_);
  auto on_device = make_engine(there(), limits_of(4, 64, 60), *device_);
  const Samples a = run_all(*on_host, both), b = run_all(*on_device, both);
  expect_same(a, b);
  EXPECT_EQ(a.at({1, 0}).prompt_logprobs.size(), 44u);
  EXPECT_TRUE(same_bits(a.at({1, 0}).prompt_logprobs, b.at({1, 0}).prompt_logprobs));
  EXPECT_TRUE(same_bits(a.at({1, 0}).prompt_top_logprobs, b.at({1, 0}).prompt_top_logprobs));
}

TEST_P(EngineOnDevice, Bf16WeightsGiveTheHostsBf16Bits) {
  constexpr auto kBf16 = kernels::PanelDtype::kBf16;
  auto on_host = make_engine(here(1, 0, kBf16), limits_of(8, 64, 60), host_);
  auto on_device = make_engine(there(1, 0, kBf16), limits_of(8, 64, 60), *device_);
  const auto requests = varied_requests(9, 3, 2, 20);
  expect_same(run_all(*on_host, requests), run_all(*on_device, requests));
}

// Windows (whose blocks are given back as samples go on), norms of heads and branches, soft caps,
// fused tensors.
TEST_P(EngineOnDevice, OtherFamiliesGiveTheHostsSamples) {
  model::ModelSpec mistral = model::tiny_spec();
  mistral.architecture = "MistralForCausalLM";
  mistral.window = 21;
  mistral.sliding = {true, true};
  for (model::ModelSpec spec :
       {mistral, model::gemma_spec(), model::qwen3_spec(), model::phi3_spec()}) {
    SCOPED_TRACE(spec.architecture);
    spec.vocab = tiny_spec().vocab;
    model::ParamStore random(spec);
    model::randomise(random, 4, 0.25f);
    const auto packed = [&](core::TeamRunner& team) {
      auto made =
          std::make_shared<model::PackedWeights>(spec, kernels::PanelDtype::kF32, team.memory());
      team.run([&](core::Team member) { made->fill(member, random, 3); });
      return made;
    };
    std::vector<GroupRequest> requests = varied_requests(11, 3, 2, 30);
    core::Rng rng(5);
    for (std::uint64_t id = 4; id < 8; ++id)  // long enough for the window and few blocks
      requests.push_back(request_of(id, random_prompt(rng, 14 + id), 1, 28));
    auto on_host = make_engine(packed(host_), limits_of(4, 24, 12), host_);
    auto on_device = make_engine(packed(*device_), limits_of(4, 24, 12), *device_);
    expect_same(run_all(*on_host, requests), run_all(*on_device, requests));
    if (gpu()) {
      EXPECT_GT(on_device->counters().replayed, 10u);
    }
  }
}

// Some steps, then new weights, then the rest.
TEST_P(EngineOnDevice, NewWeightsTakeEffectAtTheSameToken) {
  core::Rng rng(2);
  const GroupRequest request = request_of(1, random_prompt(rng, 20), 3, 18);
  for (const KvAction action : {KvAction::kKeep, KvAction::kRecompute}) {
    const auto run = [&](Engine& engine, const Weights& next) {
      Samples samples;
      EXPECT_TRUE(engine.submit(request));
      for (int i = 0; i < 8; ++i)
        step_into(engine, samples);
      EXPECT_TRUE(engine.set_weights(next, action));
      while (!engine.idle() && !HasFatalFailure())
        step_into(engine, samples);
      return samples;
    };
    auto on_host = make_engine(here(), limits_of(8, 64, 60), host_);
    auto on_device = make_engine(there(), limits_of(8, 64, 60), *device_);
    const Samples a = run(*on_host, here(2, 5)), b = run(*on_device, there(2, 5));
    expect_same(a, b);
    EXPECT_EQ(a.at({1, 0}).versions.back(), core::Version{5});
    EXPECT_EQ(a.at({1, 0}).versions.front(), core::Version{0});
  }
}

// Two sets of panels in turn, as a run's pushes fill them. Each is new once: one step runs as it is
// and the next is recorded. When a set comes again, its first step is replayed.
TEST_P(EngineOnDevice, RecordedStepsOutliveThePushesOfTwoSetsOfPanels) {
  const Weights sets[] = {there(1, 1), there(2, 2)};
  auto engine = make_engine(sets[0], limits_of(4, 64, 60), *device_);
  Samples samples;
  ASSERT_TRUE(engine->submit(request_of(1, {3, 1, 4}, 1, 60)));
  step_into(*engine, samples);  // the prompt, which is never recorded
  std::vector<std::uint64_t> replayed;
  for (int push = 0; push < 6; ++push) {
    if (push > 0) {
      ASSERT_TRUE(engine->set_weights(sets[push % 2], KvAction::kKeep));
    }
    const std::uint64_t before = engine->counters().replayed;
    for (int i = 0; i < 4; ++i)
      step_into(*engine, samples);
    replayed.push_back(engine->counters().replayed - before);
  }
  if (gpu()) {
    EXPECT_EQ(replayed, (std::vector<std::uint64_t>{3, 3, 4, 4, 4, 4}));
  } else {
    EXPECT_EQ(replayed, std::vector<std::uint64_t>(6, 0));
  }
}

TEST_P(EngineOnDevice, SleepGivesMemoryBackAndSamplesGoOn) {
  core::Rng rng(3);
  const GroupRequest request = request_of(1, random_prompt(rng, 20), 2, 16);
  const auto run = [&](Engine& engine, Weights again) {
    Samples samples;
    EXPECT_TRUE(engine.submit(request));
    for (int i = 0; i < 6; ++i)
      step_into(engine, samples);
    auto report = engine.sleep({.weights = true, .kv = true});
    EXPECT_TRUE(report);
    EXPECT_GT(report->kv.before, 0u);
    EXPECT_EQ(report->kv.after, 0u);
    EXPECT_EQ(report->weights.after, 0u);
    EXPECT_FALSE(report->weights_held_elsewhere);
    EXPECT_TRUE(engine.wake({.weights = true}));
    EXPECT_TRUE(engine.set_weights(std::move(again), KvAction::kRecompute));
    EXPECT_TRUE(engine.wake({.kv = true}));
    while (!engine.idle() && !HasFatalFailure())
      step_into(engine, samples);
    return samples;
  };
  auto on_host = make_engine(here(), limits_of(4, 64, 30), host_);
  auto on_device = make_engine(there(), limits_of(4, 64, 30), *device_);
  expect_same(run(*on_host, here()), run(*on_device, there()));
}

TEST_P(EngineOnDevice, RefusesWeightsOfAnotherMemory) {
  const auto made = Engine::create(here(), limits_of(4, 64, 30), {}, nullptr, *device_);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("another memory"), std::string::npos);
  auto engine = make_engine(there(), limits_of(4, 64, 30), *device_);
  EXPECT_FALSE(engine->set_weights(here(), KvAction::kKeep));
}

// A row whose logits are not finite ends the step and names its group, as on the host.
TEST_P(EngineOnDevice, LogitsThatAreNotFiniteNameTheGroup) {
  model::ParamStore broken = params();
  for (float& weight : broken.view("model.norm.weight"))
    weight = std::numeric_limits<float>::quiet_NaN();
  auto packed = std::make_shared<model::PackedWeights>(tiny_spec(), kernels::PanelDtype::kF32,
                                                       device_->memory());
  device_->run([&](core::Team member) { packed->fill(member, broken, 0); });
  auto engine = make_engine(packed, limits_of(4, 64, 30), *device_);
  ASSERT_TRUE(engine->submit(request_of(9, {1, 2, 3})));
  const auto step = engine->step();
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().code, core::ErrorCode::kNumeric);
  EXPECT_EQ(engine->broken_group()->value, 9u);
}

TEST(DecodeBucket, IsTheNextOfAFewSizes) {
  const auto of = [](std::int64_t rows) { return decode_bucket(rows, 20); };
  EXPECT_EQ(of(1), 1);
  EXPECT_EQ(of(2), 2);
  EXPECT_EQ(of(3), 4);
  EXPECT_EQ(of(4), 4);
  EXPECT_EQ(of(5), 8);
  EXPECT_EQ(of(8), 8);
  EXPECT_EQ(of(9), 16);
  EXPECT_EQ(of(17), 20);
  EXPECT_EQ(of(20), 20);
}

}  // namespace
}  // namespace troupe::engine
