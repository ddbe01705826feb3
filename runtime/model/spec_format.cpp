// Makes the text of config.json: from a ModelSpec that was made in code (tests, benches), or from
// the text as read, with the keys of a score head. transformers can open both.
#include "runtime/core/check.hpp"
#include "runtime/model/families.hpp"
#include "runtime/model/spec_json.hpp"

#include <nlohmann/json.hpp>

namespace troupe::model {
namespace {

using nlohmann::ordered_json;

ordered_json rope_scaling(const RopeSpec& rope) {
  if (rope.kind == RopeSpec::Kind::kDefault) return nullptr;
  if (rope.kind == RopeSpec::Kind::kLinear)
    return {{"rope_type", "linear"}, {"factor", rope.factor}};
  if (rope.kind == RopeSpec::Kind::kLongRope) {
    return {{"rope_type", "longrope"},
            {"short_factor", rope.short_factors},
            {"long_factor", rope.long_factors},
            {"factor", rope.factor},
            {"attention_factor", rope.attention_factor}};
  }
  return {{"rope_type", "llama3"},
          {"factor", rope.factor},
          {"low_freq_factor", rope.low_freq_factor},
          {"high_freq_factor", rope.high_freq_factor},
          {"original_max_position_embeddings", rope.original_context}};
}

// Uses the spelling of transformers 4, which version 5 reads too.
void put_rope(ordered_json& config, const ModelSpec& spec) {
  config["rope_theta"] = spec.rope.theta;
  config["rope_scaling"] = rope_scaling(spec.rope);
  if (spec.rope.kind == RopeSpec::Kind::kLongRope) {  // transformers reads it here for Phi-3
    config["original_max_position_embeddings"] = spec.rope.original_context;
  }
  if (spec.rope.partial != 1.0) config["partial_rotary_factor"] = spec.rope.partial;
  if (!spec.sliding_rope) return;
  TROUPE_CHECK(spec.sliding_rope->kind == RopeSpec::Kind::kDefault, "no key for such a RoPE");
  config["rope_local_base_freq"] = spec.sliding_rope->theta;
}

// The float as a JSON number: the shortest decimal that reads back as the same double.
ordered_json shortest(float value) {
  return nlohmann::json::parse(ordered_json(value).dump());
}

// Writes the keys that the family has besides Llama's.
void put_variants(ordered_json& config, const Family& family, const ModelSpec& spec) {
  const auto cap = [](float value) { return value > 0 ? shortest(value) : ordered_json(nullptr); };
  if (family.reads_attention_bias) config["attention_bias"] = spec.o_bias;
  if (family.reads_qkv_bias) config["qkv_bias"] = spec.qkv_bias;
  if (family.reads_mlp_bias) config["mlp_bias"] = spec.mlp_bias;
  if (family.reads_query_scale) config["query_pre_attn_scalar"] = spec.query_scale;
  if (family.attention_softcap >= 0) config["attn_logit_softcapping"] = cap(spec.attention_softcap);
  if (family.final_softcap >= 0) config["final_logit_softcapping"] = cap(spec.final_softcap);
  if (family.windows == WindowRule::kNone) return;
  config["sliding_window"] = nullptr;
  if (spec.window > 0) config["sliding_window"] = spec.window;
  if (family.windows == WindowRule::kAll) return;
  if (family.windows == WindowRule::kUpper) config["use_sliding_window"] = spec.window > 0;
  for (std::int64_t i = 0; i < spec.layers; ++i)
    config["layer_types"].push_back(spec.slides(i) ? "sliding_attention" : "full_attention");
}

// Writes the keys of a score head. transformers counts labels by `id2label`.
void put_score_head(ordered_json& config, const ModelSpec& spec) {
  config["architectures"] = {spec.architecture};
  config["id2label"] = {{"0", "LABEL_0"}};
  config["label2id"] = {{"LABEL_0", 0}};
  config.erase("num_labels");
  config["tie_word_embeddings"] = false;
  const bool stored = config.contains("mean") || config.contains("std");
  if (stored || spec.score_mean != 0 || spec.score_std != 1) {
    config["mean"] = spec.score_mean;
    config["std"] = spec.score_std;
  }
}

const Family& known_family(const ModelSpec& spec) {
  const Family* family = family_of(spec.architecture);
  TROUPE_CHECK(family != nullptr, "a spec of no offered architecture");
  return *family;
}

}  // namespace

ModelSpec with_score_head(const ModelSpec& spec) {
  ModelSpec out = spec;
  out.head = HeadKind::kScore;
  out.architecture = known_family(spec).score;
  out.tied = false;
  return out;
}

std::string current_config(const ModelSpec& spec) {
  if (spec.head == HeadKind::kLanguage) {
    return spec.config_json.empty() ? format_spec(spec) : spec.config_json;
  }
  auto config =
      ordered_json::parse(spec.config_json.empty() ? format_spec(spec) : spec.config_json);
  put_score_head(config, spec);
  return config.dump(2) + "\n";
}

std::string format_spec(const ModelSpec& spec) {
  const Family& family = known_family(spec);
  ordered_json config;
  config["architectures"] = {spec.architecture};
  config["model_type"] = family.model_type;
  config["hidden_size"] = spec.hidden;
  config["intermediate_size"] = spec.ffn;
  config["num_hidden_layers"] = spec.layers;
  config["num_attention_heads"] = spec.heads;
  config["num_key_value_heads"] = spec.kv_heads;
  config["head_dim"] = spec.head_dim;
  config[family.activation_key] =
      spec.activation == Activation::kSilu ? "silu" : "gelu_pytorch_tanh";
  config["vocab_size"] = spec.vocab;
  config["max_position_embeddings"] = spec.context;
  config["rms_norm_eps"] = shortest(spec.rms_eps);
  put_rope(config, spec);
  config["tie_word_embeddings"] = spec.tied;
  put_variants(config, family, spec);
  put_moe(config, spec);
  if (!spec.eos.empty()) config["eos_token_id"] = spec.eos;
  if (spec.head == HeadKind::kScore) put_score_head(config, spec);
  return config.dump(2) + "\n";
}

}  // namespace troupe::model
