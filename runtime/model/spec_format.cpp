// ModelSpec to config.json, for specs that were made by hand (tests, benches).
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

}  // namespace

std::string format_spec(const ModelSpec& spec) {
  ordered_json config;
  config["architectures"] = {spec.architecture};
  config["model_type"] = spec.architecture == "Qwen2ForCausalLM" ? "qwen2" : "llama";
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
  return config.dump(2) + "\n";
}

}  // namespace troupe::model
