// A tiny random model, requests for it, engines on it, and what they return, for the engine's
// tests.
#pragma once

#include "runtime/core/rng.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::engine {

using Weights = std::shared_ptr<const model::PackedWeights>;
using Samples = std::map<std::pair<std::uint64_t, std::int32_t>, Sample>;

inline model::ModelSpec tiny_spec(bool tied = false) {
  model::ModelSpec spec;
  spec.architecture = "LlamaForCausalLM";
  spec.layers = 2;
  spec.hidden = 40;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 10;
  spec.ffn = 56;
  spec.vocab = 1037;
  spec.context = 320;
  spec.tied = tied;
  return spec;
}

inline Weights pack(const model::ParamStore& params, core::Version version) {
  auto packed = std::make_shared<model::PackedWeights>(params.spec());
  packed->fill(core::Team{}, params, version);
  return packed;
}

inline Weights tiny_weights(std::uint64_t seed = 1, core::Version version = 0) {
  model::ParamStore params(tiny_spec());
  model::randomise(params, seed, 0.25f);
  return pack(params, version);
}

// Token t is the text "t,".
class NumberText final : public TokenText {
 public:
  std::string decode(std::span<const std::int32_t> tokens) const override {
    std::string text;
    for (const std::int32_t token : tokens)
      text += std::to_string(token) + ",";
    return text;
  }
};

inline std::vector<std::int32_t> random_prompt(core::Rng& rng,
                                               std::uint64_t length,
                                               std::int64_t vocab = tiny_spec().vocab) {
  std::vector<std::int32_t> prompt;
  for (std::uint64_t i = 0; i < length; ++i) {
    prompt.push_back(static_cast<std::int32_t>(rng.next_below(static_cast<std::uint64_t>(vocab))));
  }
  return prompt;
}

inline GroupRequest request_of(std::uint64_t id,
                               std::vector<std::int32_t> prompt,
                               std::int32_t samples = 1,
                               std::int32_t max_new = 16) {
  GroupRequest request;
  request.id.value = id;
  request.prompt = std::move(prompt);
  request.samples = samples;
  request.seed = 1000 + id;
  request.sampling.max_new_tokens = max_new;
  return request;
}

// Varied requests: all samplers and reports, prompts around block edges, several samples.
inline std::vector<GroupRequest> varied_requests(std::uint64_t seed,
                                                 std::uint64_t count,
                                                 std::int32_t samples_max = 3,
                                                 std::uint64_t prompt_max = 50) {
  core::Rng rng(seed);
  std::vector<GroupRequest> requests;
  for (std::uint64_t id = 1; id <= count; ++id) {
    const std::uint64_t length = id % 4 == 0 ? 16 * (1 + id % 2) : 1 + rng.next_below(prompt_max);
    GroupRequest request = request_of(
        id, random_prompt(rng, length),
        static_cast<std::int32_t>(1 + rng.next_below(static_cast<std::uint64_t>(samples_max))),
        static_cast<std::int32_t>(1 + rng.next_below(30)));
    switch (id % 7) {
      case 0:
        request.sampling.temperature = 0.0f;
        break;
      case 1:
        request.sampling.temperature = 0.7f;
        break;
      case 2:
        request.sampling.top_k = 30;
        break;
      case 3:
        request.sampling.top_p = 0.8f;
        request.sampling.min_p = 0.01f;
        break;
      case 4:
        request.sampling.temperature = 0.8f;
        request.sampling.top_k = id % 2 == 0 ? 50 : 0;
        request.sampling.repetition_penalty = 1.3f;
        request.sampling.presence_penalty = 0.4f;
        request.sampling.frequency_penalty = 0.7f;
        request.sampling.logit_bias = {{3, 4.0f}, {700, -100.0f}};
        break;
      case 5:
        request.sampling.temperature = 1.2f;
        request.sampling.entropies = true;
        request.sampling.raw_logprobs = true;
        request.sampling.top_logprobs = 4;
        break;
      default:
        request.sampling.min_new_tokens = 1;
        break;
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

inline std::unique_ptr<Engine> make_engine(Weights weights,
                                           EngineLimits limits,
                                           core::TeamRunner& team,
                                           std::vector<std::int32_t> eos = {},
                                           const TokenText* text = nullptr) {
  auto engine = Engine::create(std::move(weights), limits, std::move(eos), text, team);
  EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
  return std::move(engine).value();
}

inline EngineLimits limits_of(std::int32_t sequences_max,
                              std::int32_t step_tokens_max,
                              std::int64_t kv_blocks) {
  EngineLimits limits;
  limits.max_num_seqs = sequences_max;
  limits.max_num_batched_tokens = step_tokens_max;
  limits.kv_blocks = kv_blocks;
  return limits;
}

inline void collect(Samples& into, std::vector<Sample> samples) {
  for (Sample& sample : samples) {
    const std::pair key(sample.group.value, sample.index);
    EXPECT_TRUE(into.emplace(key, std::move(sample)).second) << "a sample came back twice";
  }
}

inline void step_into(Engine& engine, Samples& into) {
  auto finished = engine.step();
  ASSERT_TRUE(finished) << finished.error().message;
  collect(into, std::move(finished).value());
}

inline Samples run_all(Engine& engine, const std::vector<GroupRequest>& requests) {
  Samples samples;
  for (const GroupRequest& request : requests) {
    const auto taken = engine.submit(request);
    EXPECT_TRUE(taken) << (taken ? "" : taken.error().message);
  }
  while (!engine.idle() && !testing::Test::HasFatalFailure())
    step_into(engine, samples);
  return samples;
}

inline bool same_bits(const std::vector<TokenLogprob>& a, const std::vector<TokenLogprob>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const TokenLogprob& x, const TokenLogprob& y) {
                      return x.token == y.token && x.logprob == y.logprob;
                    });
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), 4 * a.size()) == 0);
}

inline void expect_same(const Samples& a, const Samples& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [key, sample] : a) {
    const auto at = b.find(key);
    ASSERT_NE(at, b.end());
    const std::string who =
        "group " + std::to_string(key.first) + " sample " + std::to_string(key.second);
    ASSERT_EQ(sample.tokens, at->second.tokens) << who;
    ASSERT_TRUE(same_bits(sample.logprobs, at->second.logprobs)) << who;
    ASSERT_TRUE(same_bits(sample.raw_logprobs, at->second.raw_logprobs)) << who;
    ASSERT_TRUE(same_bits(sample.entropies, at->second.entropies)) << who;
    ASSERT_TRUE(same_bits(sample.top_logprobs, at->second.top_logprobs)) << who;
    ASSERT_EQ(sample.versions, at->second.versions) << who;
    ASSERT_EQ(sample.finish, at->second.finish) << who;
  }
}

}  // namespace troupe::engine
