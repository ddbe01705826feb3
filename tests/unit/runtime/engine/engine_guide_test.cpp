// Samples with guides: the mask of every draw, the same bits whatever the batch, one step of the
// guide for one token, ends, dead ends and kept mass.
#include "runtime/async/cpu_pool.hpp"
#include "runtime/engine/token_guide.hpp"
#include "tests/unit/runtime/engine/naive_generator.hpp"
#include "tests/unit/runtime/engine/tiny_engine.hpp"
#include "tests/unit/runtime/model/device_team.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace troupe::engine {
namespace {

constexpr std::int32_t kGuideEos = 5;
constexpr std::int64_t kGuideVocab = 1037;

// Allows what a function of the tokens taken so far says.
class ScriptedGuide final : public TokenGuide {
 public:
  struct Allowed {
    std::vector<std::int32_t> tokens;
    bool may_end = false;
  };
  using Script = std::function<Allowed(const std::vector<std::int32_t>&)>;
  explicit ScriptedGuide(Script script) : script_(std::move(script)) {}

  core::Result<std::unique_ptr<TokenGuide>> clone() const override {
    return std::unique_ptr<TokenGuide>(std::make_unique<ScriptedGuide>(*this));
  }
  core::Result<GuideMask> mask() override {
    const Allowed allowed = script_(taken_);
    words_.assign(mask_words(kGuideVocab), 0);
    for (const std::int32_t token : allowed.tokens)
      words_[static_cast<std::size_t>(token / 32)] |= 1u << (token % 32);
    return GuideMask{words_, allowed.may_end};
  }
  core::Result<void> take(std::int32_t token) override {
    const Allowed allowed = script_(taken_);
    if (std::find(allowed.tokens.begin(), allowed.tokens.end(), token) == allowed.tokens.end())
      return core::fail(core::ErrorCode::kInternal, "a token that was not allowed");
    taken_.push_back(token);
    return {};
  }

 private:
  Script script_;
  std::vector<std::int32_t> taken_;
  std::vector<std::uint32_t> words_;
};

std::shared_ptr<const TokenGuide> guide_of(ScriptedGuide::Script script) {
  return std::make_shared<ScriptedGuide>(std::move(script));
}

// About a third of the vocabulary, and whole blocks of it not at all; another third for each
// history. May end behind four tokens.
ScriptedGuide::Allowed by_history(const std::vector<std::int32_t>& taken) {
  std::uint64_t hash = 7;
  for (const std::int32_t token : taken)
    hash = core::derive_seed(hash, static_cast<std::uint64_t>(token));
  ScriptedGuide::Allowed out;
  out.may_end = taken.size() >= 4 && hash % 3 == 0;
  for (std::int32_t token = 0; token < kGuideVocab; ++token) {
    const bool whole_block_out = token / 512 == static_cast<std::int32_t>(hash % 4);
    if (!whole_block_out && core::derive_seed(hash, static_cast<std::uint64_t>(token)) % 3 == 0)
      out.tokens.push_back(token);
  }
  return out;
}

std::vector<GroupRequest> guided_requests(std::uint64_t count) {
  std::vector<GroupRequest> requests = varied_requests(3, count);
  for (GroupRequest& request : requests) {
    request.sampling.kept_mass = true;
    if (request.id.value % 5 != 0) request.guide = guide_of(by_history);
  }
  return requests;
}

Samples guided_samples(EngineLimits limits,
                       core::TeamRunner& team,
                       const std::vector<GroupRequest>& requests,
                       const Weights& weights,
                       EngineCounters* counters = nullptr) {
  auto engine = make_engine(weights, limits, team, {kGuideEos});
  Samples samples = run_all(*engine, requests);
  EXPECT_EQ(engine->counters().free_blocks, engine->counters().total_blocks);
  if (counters != nullptr) *counters = engine->counters();
  return samples;
}

void expect_same_masses(const Samples& a, const Samples& b) {
  for (const auto& [key, sample] : a)
    EXPECT_TRUE(same_bits(sample.facts.log_kept_mass, b.at(key).facts.log_kept_mass)) << key.first;
}

TEST(EngineGuide, SamplesAreThoseOfTheNaiveGenerator) {
  core::SerialTeam serial;
  const Weights weights = tiny_weights();
  const auto requests = guided_requests(24);
  const Samples samples = guided_samples(limits_of(64, 512, 600), serial, requests, weights);
  for (const GroupRequest& request : requests) {
    for (std::int32_t index = 0; index < request.samples; ++index) {
      const Sample& sample = samples.at({request.id.value, index});
      std::vector<std::int32_t> sequence = request.prompt, taken;
      for (std::size_t i = 0; i < sample.tokens.size(); ++i) {
        ScriptedGuide::Allowed allowed = by_history(taken);
        if (request.guide == nullptr) break;
        std::vector<bool> in(kGuideVocab, false);
        for (const std::int32_t token : allowed.tokens)
          in[static_cast<std::size_t>(token)] = true;
        const bool early = static_cast<std::int32_t>(i) < request.sampling.min_new_tokens;
        in[kGuideEos] = allowed.may_end && !early;
        std::vector<std::int32_t> masked;
        for (std::int32_t token = 0; token < kGuideVocab; ++token) {
          if (!in[static_cast<std::size_t>(token)]) masked.push_back(token);
        }
        const Draw draw = naive_draw(*weights, request, index, sequence, masked);
        ASSERT_EQ(sample.tokens[i], draw.token) << request.id.value << " " << i;
        ASSERT_EQ(sample.logprobs[i], draw.logprob);
        ASSERT_EQ(sample.facts.log_kept_mass[i], draw.log_kept_mass);
        sequence.push_back(draw.token);
        taken.push_back(draw.token);
      }
      const bool ended = sample.tokens.back() == kGuideEos;
      EXPECT_EQ(sample.finish == FinishReason::kEos, ended);
      EXPECT_EQ(sample.guide_error, "");
    }
  }
}

TEST(EngineGuide, SamplesHaveTheSameBitsWhateverTheBatch) {
  core::SerialTeam serial;
  async::CpuPool pool(2);
  const Weights weights = tiny_weights();
  const auto requests = guided_requests(24);
  const Samples expected = guided_samples(limits_of(64, 4096, 600), serial, requests, weights);
  std::uint64_t preempted = 0;
  for (const auto& [running, rows, blocks] :
       {std::tuple(3, 7, 600), {64, 1, 600}, {16, 48, 24}, {8, 100, 20}}) {
    SCOPED_TRACE(rows);
    EngineCounters counters;
    const Samples samples =
        guided_samples(limits_of(running, rows, blocks), pool, requests, weights, &counters);
    expect_same(samples, expected);
    expect_same_masses(samples, expected);
    preempted += counters.preempted;
  }
  EXPECT_GT(preempted, 0u);
}

TEST(EngineGuide, ASwapThatRecomputesLeavesTheGuideWhereItIs) {
  core::SerialTeam serial;
  const Weights old = tiny_weights(1, 1), next = tiny_weights(2, 2);
  GroupRequest request = request_of(1, {1, 2, 3}, 2, 24);
  request.sampling.ignore_eos = true;
  request.guide = guide_of(by_history);
  auto engine = make_engine(old, limits_of(8, 64, 64), serial, {kGuideEos});
  ASSERT_TRUE(engine->submit(request));
  Samples samples;
  for (int i = 0; i < 8; ++i)
    step_into(*engine, samples);
  ASSERT_TRUE(engine->set_weights(next, KvAction::kRecompute));
  while (!engine->idle())
    step_into(*engine, samples);
  for (const auto& [key, sample] : samples) {
    EXPECT_EQ(sample.tokens.size(), 24u);
    std::vector<std::int32_t> taken;
    for (const std::int32_t token : sample.tokens) {
      const auto allowed = by_history(taken).tokens;
      EXPECT_TRUE(std::binary_search(allowed.begin(), allowed.end(), token));
      taken.push_back(token);
    }
  }
}

TEST(EngineGuide, ACompleteTextEndsWithTheModelsEndOrAtOnce) {
  core::SerialTeam serial;
  const auto two_tokens = [](const std::vector<std::int32_t>& taken) {
    if (taken.size() < 2) return ScriptedGuide::Allowed{{kGuideEos, 40, 41, 42}, false};
    return ScriptedGuide::Allowed{{}, true};
  };
  GroupRequest ends = request_of(1, {1, 2, 3}, 3, 10);
  ends.guide = guide_of(two_tokens);
  GroupRequest no_eos = ends;
  no_eos.id.value = 2;
  no_eos.sampling.ignore_eos = true;
  ends.sampling.logit_bias = {{kGuideEos, 1000.0f}};  // it is drawn as soon as it may be
  GroupRequest late = ends;
  late.id.value = 3;
  late.sampling.min_new_tokens = 9;  // a grammar that is complete ends all the same
  auto engine = make_engine(tiny_weights(), limits_of(8, 64, 64), serial, {kGuideEos});
  const Samples samples = run_all(*engine, {ends, no_eos, late});
  for (const auto& [key, sample] : samples) {
    const bool with_end = key.first != 2;
    EXPECT_EQ(sample.tokens.size(), with_end ? 3u : 2u);
    EXPECT_EQ(sample.finish, with_end ? FinishReason::kEos : FinishReason::kStop);
    EXPECT_EQ(sample.tokens.back() == kGuideEos, with_end);
    if (with_end) {  // not before the text may end, though the grammar has its text
      EXPECT_NE(sample.tokens[0], kGuideEos);
    }
  }
}

TEST(EngineGuide, ADeadEndEndsTheSampleWithItsReason) {
  core::SerialTeam serial;
  GroupRequest request = request_of(1, {1, 2, 3}, 2, 10);
  request.guide = guide_of([](const std::vector<std::int32_t>& taken) {
    return taken.size() < 3 ? ScriptedGuide::Allowed{{7, 8, 9}, false}
                            : ScriptedGuide::Allowed{{}, false};
  });
  auto engine = make_engine(tiny_weights(), limits_of(8, 64, 64), serial, {kGuideEos});
  for (const auto& [key, sample] : run_all(*engine, {request})) {
    EXPECT_EQ(sample.tokens.size(), 3u);
    EXPECT_EQ(sample.finish, FinishReason::kAborted);
    EXPECT_NE(sample.guide_error.find("no token of the vocabulary"), std::string::npos);
  }
  request.id.value = 2;
  request.guide = guide_of([](const auto&) { return ScriptedGuide::Allowed{{}, false}; });
  const auto refused = engine->submit(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kInvalidArgument);
  EXPECT_TRUE(engine->idle());
}

TEST(EngineGuide, AGuideOfAnotherVocabularyIsRefused) {
  class Narrow final : public TokenGuide {
   public:
    core::Result<std::unique_ptr<TokenGuide>> clone() const override {
      return std::unique_ptr<TokenGuide>(std::make_unique<Narrow>());
    }
    core::Result<GuideMask> mask() override { return GuideMask{words_, true}; }
    core::Result<void> take(std::int32_t) override { return {}; }

   private:
    std::vector<std::uint32_t> words_{1u};
  };
  core::SerialTeam serial;
  GroupRequest request = request_of(1, {1, 2, 3});
  request.guide = std::make_shared<Narrow>();
  auto engine = make_engine(tiny_weights(), limits_of(8, 64, 64), serial, {kGuideEos});
  const auto refused = engine->submit(request);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("another vocabulary"), std::string::npos);
}

// Four tokens of probabilities 1/2, 1/4, 1/8, 1/8.
TEST(EngineGuide, KeptMassIsThatOfTheTokensThatCouldBeDrawn) {
  std::vector<float> logits(16, -1e4f);
  for (std::size_t i = 0; i < 4; ++i)
    logits[i] = std::log(i < 2 ? 0.5f / static_cast<float>(i + 1) : 0.125f);
  float max = 0, sum = 0;
  const float one = 1.0f;
  kernels::ops().vocab_sums({.logits = logits.data(),
                             .ld = 16,
                             .vocab = 4,
                             .inv_temperature = &one,
                             .block_max = &max,
                             .block_sum = &sum},
                            {0, 1}, {0, 1});
  const HeadRow row{logits.data(), &max, &sum, 1.0f, model::merge_vocab_stats(&max, &sum, 1)};
  Sampler sampler(4);
  SamplingParams params;
  params.kept_mass = true;
  const auto kept = [&](const DrawHistory& history) {
    return sampler.draw(row, params, 0.5, history).log_kept_mass;
  };
  EXPECT_EQ(kept({}), 0.0f);
  const std::vector<std::uint32_t> mask = {0b1010};  // tokens 1 and 3
  EXPECT_NEAR(kept({.allowed = mask}), std::log(0.375), 1e-6);
  params.top_k = 2;  // of 1 and 3, both; of all, 0 and 1
  EXPECT_NEAR(kept({.allowed = mask}), std::log(0.375), 1e-6);
  EXPECT_NEAR(kept({}), std::log(0.75), 1e-6);
  params.top_k = 1;
  EXPECT_NEAR(kept({.allowed = mask}), std::log(0.25), 1e-6);
  params.temperature = 0.0f;  // the arg max of the mask; truncation has no part
  EXPECT_NEAR(kept({.allowed = mask}), std::log(0.375), 1e-6);
  EXPECT_EQ(sampler.draw(row, params, 0.5, {.allowed = mask}).token, 1);
}

TEST(EngineGuide, AllowedTokensWithoutAFiniteLogitAreNoDraw) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {0.0f, 1.0f, -infinity, -infinity};
  const float max = 1.0f, sum = 1.0f + std::exp(-1.0f);
  const HeadRow row{logits.data(), &max, &sum, 1.0f, model::merge_vocab_stats(&max, &sum, 1)};
  const std::vector<std::uint32_t> mask = {0b1100};
  Sampler sampler(4);
  for (const float temperature : {0.0f, 1.0f}) {
    for (const std::int32_t top_k : {0, 1}) {
      SamplingParams params;
      params.temperature = temperature;
      params.top_k = top_k;
      EXPECT_FALSE(std::isfinite(sampler.draw(row, params, 0.5, {.allowed = mask}).logprob));
      EXPECT_TRUE(std::isfinite(sampler.draw(row, params, 0.5, {}).logprob));
    }
  }
}

Weights packed_in(core::TeamRunner& team) {
  model::ParamStore params(tiny_spec());
  model::randomise(params, 1, 0.25f);
  auto packed =
      std::make_shared<model::PackedWeights>(tiny_spec(), kernels::PanelDtype::kF32, team.memory());
  team.run([&](core::Team member) { packed->fill(member, params, 0); });
  return packed;
}

// Guided samples and kept mass are the host's; all others stay the device's, in the same steps.
TEST(EngineGuideOnDevice, GivesTheHostsSamples) {
  std::string why;
  const auto device = model::make_emulated_team(why);
  if (device == nullptr) GTEST_SKIP() << why;
  core::SerialTeam host;
  std::vector<GroupRequest> requests = guided_requests(16);
  for (GroupRequest& request : requests)
    request.sampling.kept_mass = request.id.value % 3 != 0;
  const EngineLimits limits = limits_of(12, 64, 200);
  const Samples there = guided_samples(limits, *device, requests, packed_in(*device));
  const Samples here = guided_samples(limits, host, requests, packed_in(host));
  expect_same(there, here);
  expect_same_masses(there, here);
}

}  // namespace
}  // namespace troupe::engine
