// Reads config.json into a ModelSpec. Unsupported settings that would change the arithmetic are
// refused by name; irrelevant keys are ignored. rope_spec.cpp reads the RoPE keys, window_spec.cpp
// the windows.
#include "runtime/model/spec.hpp"

#include "runtime/core/limits.hpp"
#include "runtime/model/spec_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>

namespace troupe::model {
namespace {

using nlohmann::json;

// OpenRLHF's own classes have the body and head of transformers' classification models. The head's
// tensor name starts with `value_head_prefix`.
Result<std::string> name_of_openrlhf(const ConfigReader& config, const std::string& name) {
  TROUPE_TRY_ASSIGN(prefix, config.text("value_head_prefix", "score"));
  if (prefix != "score") {
    return config.unsupported("value_head_prefix `" + prefix + "`", "offered is score");
  }
  TROUPE_TRY_ASSIGN(type, config.text("model_type", ""));
  if (const Family* family = family_of_type(type)) return std::string(family->score);
  return config.unsupported("a " + name + " of model_type `" + type + "`",
                            "offered are " + offered_types());
}

// Finds the family, and fills in the architecture's name and head.
Result<const Family*> read_architecture(const ConfigReader& config, ModelSpec& spec) {
  const json* list = config.find("architectures");
  if (list == nullptr || !list->is_array() || list->empty() || !list->front().is_string()) {
    return config.malformed("needs `architectures`, a list with one name");
  }
  std::string& name = spec.architecture;
  name = list->front().get<std::string>();
  if (name == "RewardModel" || name == "CriticModel") {
    TROUPE_TRY_SET(name, name_of_openrlhf(config, name));
  }
  const Family* family = family_of(name);
  if (family == nullptr) {
    return core::fail(ErrorCode::kUnsupported,
                      config.where() + ": architecture " + name + " is not offered",
                      "offered are " + offered_architectures());
  }
  spec.head = name == family->score ? HeadKind::kScore : HeadKind::kLanguage;
  return family;
}

Result<Activation> activation_of(const ConfigReader& config, const Family& family) {
  TROUPE_TRY_ASSIGN(name, config.text(family.activation_key, family.activation));
  if (name == "silu") return Activation::kSilu;
  if (name == "gelu_pytorch_tanh") return Activation::kGeluTanh;
  return config.unsupported(std::string(family.activation_key) + " `" + name + "`",
                            "offered are silu, gelu_pytorch_tanh");
}

// Refuses values that would mean a different computation.
Result<void> refuse_variants(const ConfigReader& config, const Family& family) {
  const auto refuse = [&](const char* key, bool offered) -> Result<void> {
    TROUPE_TRY_ASSIGN(on, config.flag(key, false));
    if (on && !offered) return config.unsupported(std::string(key) + " = true", "offered is false");
    return {};
  };
  TROUPE_TRY(refuse("attention_bias", family.reads_attention_bias));
  TROUPE_TRY(refuse("mlp_bias", family.reads_mlp_bias));
  TROUPE_TRY(refuse("use_bidirectional_attention", false));
  if (config.find("quantization_config") != nullptr) {
    return config.unsupported("quantised weights (quantization_config)", "load the original model");
  }
  return {};
}

// Reads where the family differs from Llama.
Result<void> read_variants(const ConfigReader& config, const Family& family, ModelSpec& spec) {
  TROUPE_TRY_SET(spec.activation, activation_of(config, family));
  TROUPE_TRY_SET(spec.o_bias, config.flag("attention_bias", false));
  TROUPE_TRY_SET(spec.mlp_bias, config.flag("mlp_bias", false));
  spec.qkv_bias = family.qkv_bias || spec.o_bias;
  if (family.reads_qkv_bias) {
    TROUPE_TRY_SET(spec.qkv_bias, config.flag("qkv_bias", family.qkv_bias));
  }
  spec.qk_norm = family.qk_norm;
  spec.norm_plus_one = family.norm_plus_one;
  spec.post_norms = family.post_norms;
  spec.fused_linears = family.fused_linears;
  if (family.scaled_embedding) {
    spec.embed_scale = static_cast<float>(std::sqrt(static_cast<double>(spec.hidden)));
  }
  if (family.reads_query_scale) {
    TROUPE_TRY_SET(spec.query_scale, config.number("query_pre_attn_scalar", 256));
    if (!(spec.query_scale > 0)) return config.malformed("`query_pre_attn_scalar` must be above 0");
  }
  const auto cap = [&](const char* key, double fallback, float& out) -> Result<void> {
    if (fallback < 0) return {};
    TROUPE_TRY_ASSIGN(value, config.number(key, config.is_null(key) ? 0.0 : fallback));
    if (value < 0) return config.malformed("`" + std::string(key) + "` is below 0");
    out = static_cast<float>(value);
    return {};
  };
  TROUPE_TRY(cap("attn_logit_softcapping", family.attention_softcap, spec.attention_softcap));
  TROUPE_TRY(cap("final_logit_softcapping", family.final_softcap, spec.final_softcap));
  TROUPE_TRY_SET(spec.moe, read_moe(config, family.model_type, spec.layers, spec.ffn));
  TROUPE_TRY(read_windows(config, family, spec));
  return read_rope(config, family, spec);
}

Result<std::vector<std::int32_t>> end_tokens(const ConfigReader& config, std::int64_t vocab) {
  std::vector<std::int32_t> tokens;
  const json* value = config.find("eos_token_id");
  if (value == nullptr) return tokens;
  for (const json& item : value->is_array() ? *value : json::array({*value})) {
    if (!item.is_number_integer() || item.get<std::int64_t>() < 0 ||
        item.get<std::int64_t>() >= vocab) {
      return config.malformed("`eos_token_id` " + item.dump() + " is not an id of the vocabulary");
    }
    tokens.push_back(item.get<std::int32_t>());
  }
  return tokens;
}

Result<void> check_shape(const ConfigReader& config, const ModelSpec& spec) {
  if (spec.heads % spec.kv_heads != 0) {
    return config.malformed("num_attention_heads " + std::to_string(spec.heads) +
                            " is not a multiple of num_key_value_heads " +
                            std::to_string(spec.kv_heads));
  }
  if (spec.head_dim % 2 != 0) {
    return config.malformed("head_dim " + std::to_string(spec.head_dim) + " is odd");
  }
  if (spec.parameter_count() > kParameters_max) {
    return config.malformed("describes " + std::to_string(spec.parameter_count()) + " parameters",
                            "the limit is " + std::to_string(kParameters_max));
  }
  return {};
}

// A score head has one label. Without the keys, transformers' default is two; OpenRLHF models have
// no label keys.
Result<void> read_score_head(const ConfigReader& config, ModelSpec& spec) {
  std::size_t labels = 2;
  if (const json* names = config.find("id2label"); names != nullptr && names->is_object()) {
    labels = names->size();
  }
  if (const json* count = config.find("num_labels"); count != nullptr) {
    labels = count->is_number_unsigned() ? count->get<std::size_t>() : 0;
  }
  if (config.find("value_head_prefix") != nullptr) labels = 1;
  if (labels != 1) {
    return config.unsupported(
        "a " + spec.architecture + " with " + std::to_string(labels) + " labels",
        "a score model has one (`id2label` with one entry)");
  }
  TROUPE_TRY_SET(spec.score_mean, config.number("mean", 0.0));
  TROUPE_TRY_SET(spec.score_std, config.number("std", 1.0));
  if (!(spec.score_std > 0)) return config.malformed("`std` of the scores must be above 0");
  spec.tied = false;  // there is no head that could be the embedding
  return {};
}

Result<std::int64_t> head_dim_of(const ConfigReader& config,
                                 const Family& family,
                                 const ModelSpec& spec) {
  if (config.find("head_dim") != nullptr || family.head_dim > 0) {
    return config.whole("head_dim", 2, kHeadDim_max, family.head_dim);
  }
  if (spec.hidden % spec.heads != 0 || spec.hidden / spec.heads > kHeadDim_max) {
    return config.malformed("hidden_size " + std::to_string(spec.hidden) +
                            " does not divide into num_attention_heads " +
                            std::to_string(spec.heads) + ", and there is no head_dim");
  }
  return spec.hidden / spec.heads;
}

Result<ModelSpec> read_fields(const ConfigReader& config) {
  ModelSpec spec;
  TROUPE_TRY_ASSIGN(found, read_architecture(config, spec));
  const Family& family = *found;
  TROUPE_TRY(refuse_variants(config, family));
  TROUPE_TRY_SET(spec.layers, config.whole("num_hidden_layers", 1, kLayers_max));
  TROUPE_TRY_SET(spec.hidden, config.whole("hidden_size", 2, kWidth_max));
  TROUPE_TRY_SET(spec.heads, config.whole("num_attention_heads", 1, kHeads_max));
  TROUPE_TRY_SET(spec.kv_heads, config.whole("num_key_value_heads", 1, kHeads_max, spec.heads));
  TROUPE_TRY_SET(spec.ffn, config.whole("intermediate_size", 1, kWidth_max));
  TROUPE_TRY_SET(spec.vocab, config.whole("vocab_size", 1, kVocab_max));
  TROUPE_TRY_SET(spec.context,
                 config.whole("max_position_embeddings", 1, kContext_max, family.context));
  TROUPE_TRY_ASSIGN(rms_eps, config.number("rms_norm_eps", family.rms_eps));
  TROUPE_TRY_SET(spec.tied, config.flag("tie_word_embeddings", family.tied));
  if (!(rms_eps > 0 && rms_eps < 1)) return config.malformed("`rms_norm_eps` must lie in (0, 1)");
  spec.rms_eps = static_cast<float>(rms_eps);
  if (spec.head == HeadKind::kScore) TROUPE_TRY(read_score_head(config, spec));
  TROUPE_TRY_SET(spec.head_dim, head_dim_of(config, family, spec));
  TROUPE_TRY(read_variants(config, family, spec));
  TROUPE_TRY(check_shape(config, spec));
  TROUPE_TRY_SET(spec.eos, end_tokens(config, spec.vocab));
  return spec;
}

}  // namespace

std::int64_t ModelSpec::parameter_count() const {
  const std::int64_t attention = hidden * (qkv_width() + q_width()) + (qkv_bias ? qkv_width() : 0) +
                                 (o_bias ? hidden : 0) + (qk_norm ? 2 * head_dim : 0);
  const std::int64_t dense = 3 * hidden * ffn + (mlp_bias ? 2 * ffn + hidden : 0);
  const std::int64_t sparse_layers = moe.sparse_layers(layers);
  const std::int64_t feed_forward =
      (layers - sparse_layers) * dense + sparse_layers * moe.layer_parameters(hidden);
  const std::int64_t layer = attention + (post_norms ? 4 : 2) * hidden;
  return layers * layer + feed_forward + hidden + hidden * (vocab + (tied ? 0 : head_rows()));
}

std::int64_t ModelSpec::active_weights() const {
  const std::int64_t sparse_layers = moe.sparse_layers(layers);
  return layers * hidden * (qkv_width() + q_width()) + (layers - sparse_layers) * 3 * hidden * ffn +
         sparse_layers * moe.layer_active_parameters(hidden);
}

LayerWindows ModelSpec::layer_windows() const {
  const auto slide = static_cast<std::int64_t>(std::count(sliding.begin(), sliding.end(), true));
  return {layers - slide, slide, window};
}

std::int64_t ModelSpec::window_of_all() const {
  return layer_windows().full == 0 ? window : 0;
}

float ModelSpec::attention_scale() const {
  if (query_scale > 0) return static_cast<float>(1.0 / std::sqrt(query_scale));
  return 1.0f / std::sqrt(static_cast<float>(head_dim));
}

Result<ModelSpec> parse_spec(const std::string& config_json, const std::string& where) {
  TROUPE_TRY_ASSIGN(document, parse_config_json(config_json, where));
  TROUPE_TRY_ASSIGN(spec, read_fields(ConfigReader(document, where)));
  spec.config_json = config_json;
  return spec;
}

std::int32_t pad_token_of(const ModelSpec& spec) {
  const auto config = nlohmann::json::parse(spec.config_json, nullptr, false);
  const auto pad = config.is_object() ? config.find("pad_token_id") : config.end();
  if (pad == config.end() || !pad->is_number_unsigned()) return -1;
  const auto id = pad->get<std::uint64_t>();
  return id < static_cast<std::uint64_t>(spec.vocab) ? static_cast<std::int32_t>(id) : -1;
}

Result<ModelSpec> read_spec(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return core::fail(ErrorCode::kNotFound, "no model folder at " + folder.string());
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return core::fail(ErrorCode::kNotFound,
                      "no config.json in " + folder.string() + ": it is not a Hugging Face model");
  }
  std::string text(core::limits::kConfigFile_bytes_max + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > core::limits::kConfigFile_bytes_max) {
    return core::fail(ErrorCode::kData, path.string() + " is larger than " +
                                            std::to_string(core::limits::kConfigFile_bytes_max) +
                                            " bytes");
  }
  return parse_spec(text, path.string());
}

}  // namespace troupe::model
