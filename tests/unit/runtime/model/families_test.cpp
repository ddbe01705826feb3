// The families' configurations as their models publish them, what of them is refused, and how the
// special weights of a family are packed.
#include "runtime/model/families.hpp"

#include "runtime/model/packed.hpp"
#include "runtime/model/spec.hpp"
#include "tests/unit/runtime/model/test_models.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::model {
namespace {

// The keys that all have, small; `extra` ends with them.
std::string config(const std::string& architecture, const std::string& extra) {
  return "{\"architectures\": [\"" + architecture + "\"], " +
         R"("hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
            "num_key_value_heads": 2, "vocab_size": 300, "num_hidden_layers": 4)" +
         (extra.empty() ? "" : ", " + extra) + "}";
}

ModelSpec spec_of(const std::string& architecture, const std::string& extra) {
  auto spec = parse_spec(config(architecture, extra), "config.json");
  EXPECT_TRUE(spec) << spec.error().message;
  return spec ? *spec : ModelSpec{};
}

std::string refusal(const std::string& architecture, const std::string& extra) {
  const auto spec = parse_spec(config(architecture, extra), "config.json");
  EXPECT_FALSE(spec) << extra;
  return spec ? "" : spec.error().message;
}

using Flags = std::vector<bool>;

TEST(Families, MistralSlidesInAllLayersOrNone) {
  const ModelSpec first =
      spec_of("MistralForCausalLM", R"("sliding_window": 4096, "head_dim": 20)");
  EXPECT_EQ(first.window_of(0), 4096);
  EXPECT_EQ(first.window_of(3), 4096);
  EXPECT_EQ(first.head_dim, 20);
  EXPECT_EQ(first.context, 131072);
  EXPECT_EQ(spec_of("MistralForCausalLM", R"("sliding_window": null)").window_of(0), 0);
  EXPECT_EQ(spec_of("MistralForCausalLM", "").window_of(0), 4096);  // its class's default
  EXPECT_NE(refusal("MistralForCausalLM",
                    R"("sliding_window": 8, "layer_types": ["full_attention", "sliding_attention",
                       "full_attention", "sliding_attention"])")
                .find("layer_types that differ from sliding_window"),
            std::string::npos);
}

TEST(Families, QwenSlidesFromALayerOn) {
  const char* keys = R"("use_sliding_window": true, "sliding_window": 9, "max_window_layers": 3)";
  for (const char* name : {"Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    const ModelSpec spec = spec_of(name, keys);
    EXPECT_EQ(spec.sliding, (Flags{false, false, false, true}));
    EXPECT_EQ(spec.window_of(2), 0);
    EXPECT_EQ(spec.window_of(3), 9);
    const ModelSpec off = spec_of(
        name, R"("use_sliding_window": false, "sliding_window": 9, "max_window_layers": 0)");
    EXPECT_TRUE(off.sliding.empty());
  }
  const ModelSpec typed = spec_of("Qwen3ForCausalLM", std::string(keys) + R"(, "layer_types":
      ["sliding_attention", "full_attention", "full_attention", "full_attention"])");
  EXPECT_EQ(typed.sliding, (Flags{true, false, false, false}));
  EXPECT_NE(refusal("Qwen3ForCausalLM", R"("layer_types": ["full_attention"])").find("layer_types"),
            std::string::npos);
  EXPECT_NE(refusal("Qwen3ForCausalLM", R"("layer_types": ["full_attention", "full_attention",
                    "full_attention", "linear_attention"])")
                .find("linear_attention"),
            std::string::npos);
}

TEST(Families, Qwen3NormsHeadsAndHasTheirSize) {
  const ModelSpec spec = spec_of("Qwen3ForCausalLM", R"("attention_bias": true)");
  EXPECT_TRUE(spec.qk_norm);
  EXPECT_EQ(spec.head_dim, 128);
  EXPECT_TRUE(spec.qkv_bias && spec.o_bias);
  const ParamLayout layout(spec);
  ASSERT_NE(layout.find("model.layers.1.self_attn.q_norm.weight"), nullptr);
  EXPECT_EQ(layout.find("model.layers.1.self_attn.k_norm.weight")->shape,
            (std::vector<std::int64_t>{128}));
  EXPECT_EQ(layout.find("model.layers.1.self_attn.o_proj.bias")->count, 64);
}

TEST(Families, Phi3FusesAndTurnsAPart) {
  const ModelSpec spec =
      spec_of("Phi3ForCausalLM", R"("partial_rotary_factor": 0.75, "sliding_window": 2047)");
  EXPECT_EQ(spec.rotary(), 12);
  EXPECT_EQ(spec.window_of(2), 2047);
  EXPECT_EQ(spec.rms_eps, 1e-5f);
  const ParamLayout layout(spec);
  EXPECT_EQ(layout.find("model.layers.0.self_attn.qkv_proj.weight")->shape,
            (std::vector<std::int64_t>{128, 64}));
  EXPECT_EQ(layout.find("model.layers.0.mlp.gate_up_proj.weight")->shape,
            (std::vector<std::int64_t>{192, 64}));
  EXPECT_EQ(layout.find("model.layers.0.self_attn.q_proj.weight"), nullptr);
  EXPECT_EQ(spec_of("Phi3ForCausalLM", R"("rope_parameters": {"rope_type": "default",
                    "rope_theta": 500.0, "partial_rotary_factor": 0.5})")
                .rotary(),
            8);
  EXPECT_NE(refusal("Phi3ForCausalLM", R"("rope_scaling": {"type": "yarn", "factor": 2.0})")
                .find("rope type `yarn`; offered are default, linear, llama3, longrope"),
            std::string::npos);
  EXPECT_NE(refusal("Phi3ForCausalLM", R"("partial_rotary_factor": 0.7)").find("rotates 11"),
            std::string::npos);
  EXPECT_NE(refusal("MistralForCausalLM", R"("partial_rotary_factor": 0.5)").find("partial_rotary"),
            std::string::npos);
}

TEST(Families, Gemma2) {
  const ModelSpec spec = spec_of("Gemma2ForCausalLM", R"("query_pre_attn_scalar": 144,
      "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
      "sliding_window": 11, "attn_logit_softcapping": 50.0, "final_logit_softcapping": null)");
  EXPECT_EQ(spec.activation, Activation::kGeluTanh);
  EXPECT_TRUE(spec.tied && spec.norm_plus_one && spec.post_norms);
  EXPECT_FALSE(spec.qk_norm);
  EXPECT_EQ(spec.head_dim, 256);
  EXPECT_EQ(spec.embed_scale, 8.0f);
  EXPECT_EQ(spec.attention_scale(), 1.0f / 12);
  EXPECT_EQ(spec.attention_softcap, 50.0f);
  EXPECT_EQ(spec.final_softcap, 0.0f);
  EXPECT_EQ(spec.sliding, (Flags{true, false, true, false}));
  EXPECT_EQ(spec_of("Gemma2ForCausalLM", "").final_softcap, 30.0f);
  const ParamLayout layout(spec);
  for (const char* name : {"input_layernorm", "post_attention_layernorm",
                           "pre_feedforward_layernorm", "post_feedforward_layernorm"})
    EXPECT_NE(layout.find(std::string("model.layers.3.") + name + ".weight"), nullptr) << name;
  EXPECT_NE(refusal("Gemma2ForCausalLM", R"("hidden_activation": "gelu")").find("`gelu`"),
            std::string::npos);
  EXPECT_NE(refusal("Gemma2ForCausalLM", R"("final_logit_softcapping": -1)").find("below 0"),
            std::string::npos);
}

TEST(Families, Gemma3HasARopeForSlidingLayers) {
  const ModelSpec old = spec_of("Gemma3ForCausalLM", R"("rope_theta": 1000000.0,
      "rope_local_base_freq": 20000.0, "rope_scaling": {"rope_type": "linear", "factor": 8.0},
      "sliding_window": 5, "sliding_window_pattern": 3)");
  const ModelSpec fresh = spec_of("Gemma3ForCausalLM", R"("rope_parameters": {
      "full_attention": {"rope_type": "linear", "rope_theta": 1000000.0, "factor": 8.0},
      "sliding_attention": {"rope_type": "default", "rope_theta": 20000.0}}, "sliding_window": 5,
      "layer_types": ["sliding_attention", "sliding_attention", "full_attention",
                      "sliding_attention"], "sliding_window_pattern": 6)");
  for (const ModelSpec& spec : {old, fresh}) {
    EXPECT_EQ(spec.sliding, (Flags{true, true, false, true}));
    EXPECT_EQ(spec.rope_of(2).theta, 1e6);
    EXPECT_EQ(spec.rope_of(2).kind, RopeSpec::Kind::kLinear);
    EXPECT_EQ(spec.rope_of(2).factor, 8);
    EXPECT_EQ(spec.rope_of(0).theta, 2e4);
    EXPECT_EQ(spec.rope_of(0).kind, RopeSpec::Kind::kDefault);
    EXPECT_TRUE(spec.qk_norm);
  }
  const PackedWeights weights(fresh);
  EXPECT_EQ(weights.layer(0).rope_cos, weights.layer(3).rope_cos);
  EXPECT_NE(weights.layer(0).rope_cos, weights.layer(2).rope_cos);
  EXPECT_NE(refusal("Gemma3ForCausalLM", R"("use_bidirectional_attention": true)")
                .find("use_bidirectional_attention"),
            std::string::npos);
  EXPECT_NE(refusal("MistralForCausalLM", R"("rope_parameters": {"full_attention": {}})")
                .find("RoPE by layer type"),
            std::string::npos);
}

TEST(Families, BiasesOfLlama) {
  const ModelSpec spec = spec_of("LlamaForCausalLM", R"("attention_bias": true, "mlp_bias": true)");
  const ParamLayout layout(spec);
  std::int64_t count = 0;
  for (const ParamView& view : layout.views)
    count += view.count;
  EXPECT_EQ(count, spec.parameter_count());
  EXPECT_EQ(layout.find("model.layers.0.mlp.up_proj.bias")->count, 96);
  EXPECT_EQ(layout.find("model.layers.0.mlp.down_proj.bias")->count, 64);
  EXPECT_NE(refusal("MistralForCausalLM", R"("mlp_bias": true)").find("mlp_bias"),
            std::string::npos);
}

// What is written for a spec made by hand reads back as the same arithmetic.
TEST(Families, FormatReadsBack) {
  const std::pair<const char*, const char*> kConfigs[] = {
      {"MistralForCausalLM", R"("sliding_window": 7)"},
      {"MistralForSequenceClassification", R"("sliding_window": null, "num_labels": 1)"},
      {"Qwen2ForCausalLM",
       R"("use_sliding_window": true, "sliding_window": 9, "max_window_layers": 2)"},
      {"Qwen3ForCausalLM", R"("attention_bias": true, "head_dim": 18)"},
      {"Phi3ForCausalLM", R"("partial_rotary_factor": 0.5, "sliding_window": null)"},
      {"Gemma2ForCausalLM", R"("query_pre_attn_scalar": 20, "final_logit_softcapping": null)"},
      {"Gemma3ForCausalLM", R"("rope_local_base_freq": 300.0, "sliding_window": 5)"},
      {"LlamaForCausalLM", R"("attention_bias": true, "mlp_bias": true,
                              "hidden_act": "gelu_pytorch_tanh")"}};
  for (const auto& [name, extra] : kConfigs) {
    const ModelSpec spec = spec_of(name, extra);
    const auto again = parse_spec(format_spec(spec), "again");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->architecture, spec.architecture);
    EXPECT_EQ(again->window, spec.window) << name;
    EXPECT_EQ(again->sliding, spec.sliding) << name;
    EXPECT_EQ(again->rotary(), spec.rotary());
    EXPECT_EQ(again->activation, spec.activation);
    EXPECT_EQ(again->query_scale, spec.query_scale);
    EXPECT_EQ(again->attention_softcap, spec.attention_softcap);
    EXPECT_EQ(again->final_softcap, spec.final_softcap);
    EXPECT_EQ(again->o_bias, spec.o_bias);
    EXPECT_EQ(again->mlp_bias, spec.mlp_bias);
    EXPECT_EQ(again->rope_of(0).theta, spec.rope_of(0).theta);
    EXPECT_EQ(again->parameter_count(), spec.parameter_count()) << name;
  }
}

TEST(Families, ScoreHeadsKeepTheFamily) {
  for (const Family& family : families()) {
    const ModelSpec spec = spec_of(family.language, R"("sliding_window": 8)");
    const ModelSpec score = with_score_head(spec);
    EXPECT_EQ(score.architecture, family.score);
    EXPECT_EQ(score.qk_norm, spec.qk_norm);
    EXPECT_FALSE(score.tied);
    const auto again = parse_spec(current_config(score), "again");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->head, HeadKind::kScore);
  }
}

// Norms that count from 1 are packed as what a row is multiplied by, and embeddings come scaled.
TEST(Families, NormsAndEmbeddingsArePackedAsTheyAct) {
  const ModelSpec spec = gemma_spec();
  const TestModel model(spec);
  const PackedLayer& layer = model.weights.layer(1);
  const auto expect_plus_one = [&](const float* packed, const char* name) {
    const auto raw = model.params.view(std::string("model.layers.1.") + name);
    ASSERT_FALSE(raw.empty()) << name;
    for (std::size_t i = 0; i < raw.size(); ++i)
      ASSERT_EQ(packed[i], 1.0f + raw[i]) << name;
  };
  expect_plus_one(layer.input_norm, "input_layernorm.weight");
  expect_plus_one(layer.attention_out_norm, "post_attention_layernorm.weight");
  expect_plus_one(layer.ffn_norm, "pre_feedforward_layernorm.weight");
  expect_plus_one(layer.ffn_out_norm, "post_feedforward_layernorm.weight");
  expect_plus_one(layer.q_norm, "self_attn.q_norm.weight");
  expect_plus_one(layer.k_norm, "self_attn.k_norm.weight");
  const auto bias = model.params.view("model.layers.1.mlp.up_proj.bias");
  EXPECT_EQ(layer.gate_up_bias[spec.ffn + 3], bias[3]);
  std::vector<float> row(static_cast<std::size_t>(spec.hidden));
  const std::int32_t token = 5;
  model.weights.embed(&token, 0, 1, row.data());
  EXPECT_EQ(row[7], model.params.view("model.embed_tokens.weight")[5 * 60 + 7] * 7.7f);
}

}  // namespace
}  // namespace troupe::model
