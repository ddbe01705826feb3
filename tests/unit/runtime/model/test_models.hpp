// Small random models for the unit tests of this room, and a two-member team of real threads.
#pragma once

#include "runtime/core/team.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"

#include <memory>
#include <ostream>
#include <thread>
#include <vector>

namespace troupe::model {

inline ModelSpec tiny_spec() {
  ModelSpec spec;
  spec.architecture = "LlamaForCausalLM";
  spec.layers = 2;
  spec.hidden = 60;  // 3 heads of 20: nothing is a multiple of 16
  spec.heads = 3;
  spec.kv_heads = 1;
  spec.head_dim = 20;
  spec.ffn = 72;
  spec.vocab = 257;
  spec.context = 256;
  spec.tied = true;
  return spec;
}

inline ModelSpec qwen_spec() {
  ModelSpec spec = tiny_spec();
  spec.architecture = "Qwen2ForCausalLM";
  spec.qkv_bias = true;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 16;
  spec.hidden = 64;
  spec.tied = false;
  return spec;
}

// Norms of heads, and q wider than the hidden state.
inline ModelSpec qwen3_spec() {
  ModelSpec spec = tiny_spec();
  spec.architecture = "Qwen3ForCausalLM";
  spec.qk_norm = true;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 18;
  spec.hidden = 64;
  return spec;
}

// Fused tensors, a part of a head that turns by longrope, a window in every layer.
inline ModelSpec phi3_spec() {
  ModelSpec spec = tiny_spec();
  spec.architecture = "Phi3ForCausalLM";
  spec.fused_linears = true;
  spec.rope.partial = 0.5;
  spec.rotary_dim = 10;
  spec.rope.kind = RopeSpec::Kind::kLongRope;
  spec.rope.short_factors = {1, 1, 1.5, 2, 2};
  spec.rope.long_factors = {1, 1.2, 3, 5, 9.5};
  spec.rope.original_context = 16;
  spec.rope.extended = true;
  spec.rope.attention_factor = 1.3;
  spec.window = 13;
  spec.sliding = {true, true};
  spec.tied = false;
  return spec;
}

// Everything that Gemma 2 and Gemma 3 do, at once, and biases.
inline ModelSpec gemma_spec() {
  ModelSpec spec = tiny_spec();
  spec.architecture = "Gemma3ForCausalLM";
  spec.activation = Activation::kGeluTanh;
  spec.qkv_bias = spec.o_bias = spec.mlp_bias = true;
  spec.qk_norm = spec.norm_plus_one = spec.post_norms = true;
  spec.embed_scale = 7.7f;
  spec.query_scale = 11;
  spec.attention_softcap = 3;
  spec.final_softcap = 2;
  spec.window = 17;
  spec.sliding = {true, false};
  spec.sliding_rope = RopeSpec{};
  spec.rope.theta = 1e6;
  spec.rope.kind = RopeSpec::Kind::kLinear;
  spec.rope.factor = 4;
  return spec;
}

// Two layers of five experts, two a token.
inline ModelSpec mixtral_spec() {
  ModelSpec spec = tiny_spec();
  spec.architecture = "MixtralForCausalLM";
  spec.tied = false;
  spec.moe.experts = 5;
  spec.moe.experts_per_token = 2;
  spec.moe.ffn = spec.ffn;
  spec.moe.norm_topk = true;
  spec.moe.names = MoeNames::kMixtral;
  return spec;
}

// Experts and a shared one in layers 0 and 2, a dense network in layer 1.
inline ModelSpec qwen_moe_spec() {
  ModelSpec spec = qwen_spec();
  spec.architecture = "Qwen2MoeForCausalLM";
  spec.layers = 3;
  spec.moe.experts = 19;  // the router's matrix has 20 rows
  spec.moe.experts_per_token = 3;
  spec.moe.ffn = 20;
  spec.moe.shared_ffn = 36;
  spec.moe.dense_layers = {1};
  return spec;
}

inline std::vector<ModelSpec> varied_specs() {
  return {tiny_spec(),  qwen_spec(),    qwen3_spec(),   phi3_spec(),
          gemma_spec(), mixtral_spec(), qwen_moe_spec()};
}

// How GoogleTest names a spec in messages.
inline void PrintTo(const ModelSpec& spec, std::ostream* out) {
  *out << spec.architecture;
}

// Two threads that run a region together.
class PairTeam final : public core::TeamRunner {
 public:
  void run(const std::function<void(core::Team)>& region) override {
    core::TeamBarrier barrier(2);
    std::jthread other([&] { region({1, 2, &barrier}); });
    region({0, 2, &barrier});
  }
  int size() const noexcept override { return 2; }
};

struct TestModel {
  explicit TestModel(const ModelSpec& spec, float std = 0.12f, std::uint64_t seed = 5)
      : params(spec), weights(spec) {
    randomise(params, seed, std);
    repack();
  }
  void repack() { weights.fill({}, params, 1); }
  ParamStore params;
  PackedWeights weights;
};

// Token ids that look random but are fixed.
inline std::vector<std::int32_t> some_tokens(std::int64_t count, std::int64_t vocab, int salt = 0) {
  std::vector<std::int32_t> tokens;
  std::uint64_t state = 88172645463325252ull + static_cast<std::uint64_t>(salt) * 7919;
  for (std::int64_t i = 0; i < count; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    tokens.push_back(static_cast<std::int32_t>(state % static_cast<std::uint64_t>(vocab)));
  }
  return tokens;
}

}  // namespace troupe::model
