// ModelSpec to config.json, for specs that were made by hand (tests, benches), and the changes that
// a score head makes in a config.json that was read. transformers opens both.
#include "runtime/model/spec.hpp"

#include <nlohmann/json.hpp>

namespace troupe::model {
namespace {

using nlohmann::ordered_json;

ordered_json rope_scaling(const RopeSpec& rope) {
  if (rope.kind == RopeSpec::Kind::kDefault) return nullptr;
  if (rope.kind == RopeSpec::Kind::kLinear)
    return {{"rope_type", "linear"}, {"factor", rope.factor}};
  return {{"rope_type", "llama3"},
          {"factor", rope.factor},
          {"low_freq_factor", rope.low_freq_factor},
          {"high_freq_factor", rope.high_freq_factor},
          {"original_max_position_embeddings", rope.original_context}};
}

bool is_qwen2(const ModelSpec& spec) {
  return spec.architecture.starts_with("Qwen2");
}

// The keys of a score head; transformers counts its labels by `id2label`.
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

}  // namespace

ModelSpec with_score_head(const ModelSpec& spec) {
  ModelSpec out = spec;
  out.head = HeadKind::kScore;
  out.architecture =
      is_qwen2(spec) ? "Qwen2ForSequenceClassification" : "LlamaForSequenceClassification";
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
  ordered_json config;
  config["architectures"] = {spec.architecture};
  config["model_type"] = is_qwen2(spec) ? "qwen2" : "llama";
  config["hidden_size"] = spec.hidden;
  config["intermediate_size"] = spec.ffn;
  config["num_hidden_layers"] = spec.layers;
  config["num_attention_heads"] = spec.heads;
  config["num_key_value_heads"] = spec.kv_heads;
  config["head_dim"] = spec.head_dim;
  config["hidden_act"] = "silu";
  config["vocab_size"] = spec.vocab;
  config["max_position_embeddings"] = spec.context;
  // The shortest decimal that reads back as the same float.
  config["rms_norm_eps"] = nlohmann::json::parse(ordered_json(spec.rms_eps).dump());
  config["rope_theta"] = spec.rope.theta;
  config["rope_scaling"] = rope_scaling(spec.rope);
  config["tie_word_embeddings"] = spec.tied;
  if (!spec.eos.empty()) config["eos_token_id"] = spec.eos;
  if (spec.head == HeadKind::kScore) put_score_head(config, spec);
  return config.dump(2) + "\n";
}

}  // namespace troupe::model
