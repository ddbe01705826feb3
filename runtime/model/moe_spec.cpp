// Config keys and tensor names of the model families with experts. An absent key has the default of
// transformers.
#include "runtime/model/moe_spec.hpp"

#include "runtime/model/spec.hpp"
#include "runtime/model/spec_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::model {
namespace {

std::string layer_prefix(std::int64_t layer) {
  return "model.layers." + std::to_string(layer) + ".";
}

ExpertNames projections(const std::string& at) {
  return {at + "gate_proj.weight", at + "up_proj.weight", at + "down_proj.weight"};
}

Result<std::int64_t> read_count(const ConfigReader& config, std::int64_t fallback) {
  // For Qwen3-MoE transformers 5 writes num_local_experts, earlier versions num_experts.
  const char* key =
      config.find("num_local_experts") != nullptr ? "num_local_experts" : "num_experts";
  return config.whole(key, 1, kExperts_max, fallback);
}

// The layers that `mlp_only_layers` names and those that `decoder_sparse_step` skips.
Result<std::vector<std::int64_t>> read_dense_layers(const ConfigReader& config,
                                                    std::int64_t layers) {
  TROUPE_TRY_ASSIGN(step, config.whole("decoder_sparse_step", 1, kLayers_max, 1));
  std::vector<bool> dense(static_cast<std::size_t>(layers));
  if (const auto* list = config.find("mlp_only_layers"); list != nullptr) {
    if (!list->is_array()) return config.malformed("`mlp_only_layers` is not a list");
    for (const auto& item : *list) {
      if (!item.is_number_integer()) {
        return config.malformed("`mlp_only_layers` holds " + item.dump() +
                                ", not a layer's number");
      }
      const auto layer = item.get<std::int64_t>();
      if (layer >= 0 && layer < layers) dense[static_cast<std::size_t>(layer)] = true;
    }
  }
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < layers; ++i) {
    if (dense[static_cast<std::size_t>(i)] || (i + 1) % step != 0) out.push_back(i);
  }
  return out;
}

Result<MoeSpec> read_mixtral(const ConfigReader& config, std::int64_t ffn) {
  MoeSpec moe;
  TROUPE_TRY_SET(moe.experts, read_count(config, 8));
  TROUPE_TRY_SET(moe.experts_per_token, config.whole("num_experts_per_tok", 1, kExperts_max, 2));
  moe.ffn = ffn;
  moe.norm_topk = true;
  moe.names = MoeNames::kMixtral;
  return moe;
}

Result<MoeSpec> read_qwen(const ConfigReader& config, bool shared, std::int64_t layers) {
  MoeSpec moe;
  moe.names = MoeNames::kQwen;
  TROUPE_TRY_SET(moe.experts, read_count(config, shared ? 60 : 128));
  TROUPE_TRY_SET(moe.experts_per_token,
                 config.whole("num_experts_per_tok", 1, kExperts_max, shared ? 4 : 8));
  TROUPE_TRY_SET(moe.ffn,
                 config.whole("moe_intermediate_size", 1, kWidth_max, shared ? 1408 : 768));
  TROUPE_TRY_SET(moe.norm_topk, config.flag("norm_topk_prob", false));
  TROUPE_TRY_SET(moe.dense_layers, read_dense_layers(config, layers));
  if (!shared) return moe;
  TROUPE_TRY_SET(moe.shared_ffn,
                 config.whole("shared_expert_intermediate_size", 1, kWidth_max, 5632));
  return moe;
}

}  // namespace

bool MoeSpec::sparse(std::int64_t layer) const {
  return any() && !std::binary_search(dense_layers.begin(), dense_layers.end(), layer);
}

std::int64_t MoeSpec::sparse_layers(std::int64_t layers) const {
  return any() ? layers - static_cast<std::int64_t>(dense_layers.size()) : 0;
}

std::int64_t MoeSpec::dense_ffn(std::int64_t layers, std::int64_t plain) const {
  return std::max(sparse_layers(layers) == layers ? 0 : plain, shared_ffn);
}

std::int64_t MoeSpec::layer_parameters(std::int64_t hidden) const {
  return hidden * (router_rows() + 3 * (experts * ffn + shared_ffn));
}

std::int64_t MoeSpec::layer_active_parameters(std::int64_t hidden) const {
  return hidden * (router_rows() + 3 * (experts_per_token * ffn + shared_ffn));
}

std::string router_name(MoeNames names, std::int64_t layer) {
  const char* block = names == MoeNames::kMixtral ? "block_sparse_moe" : "mlp";
  return layer_prefix(layer) + block + ".gate.weight";
}

ExpertNames expert_names(MoeNames names, std::int64_t layer, std::int64_t expert) {
  if (names == MoeNames::kMixtral) {
    const std::string at =
        layer_prefix(layer) + "block_sparse_moe.experts." + std::to_string(expert) + ".";
    return {at + "w1.weight", at + "w3.weight", at + "w2.weight"};
  }
  return projections(layer_prefix(layer) + "mlp.experts." + std::to_string(expert) + ".");
}

ExpertNames shared_expert_names(std::int64_t layer) {
  return projections(layer_prefix(layer) + "mlp.shared_expert.");
}

std::string shared_gate_name(std::int64_t layer) {
  return layer_prefix(layer) + "mlp.shared_expert_gate.weight";
}

FusedNames fused_names(std::int64_t layer) {
  const std::string at = layer_prefix(layer) + "mlp.experts.";
  return {at + "gate_up_proj", at + "down_proj"};
}

Result<MoeSpec> read_moe(const ConfigReader& config,
                         std::string_view model_type,
                         std::int64_t layers,
                         std::int64_t ffn) {
  MoeSpec moe;
  if (model_type == "mixtral") {
    TROUPE_TRY_SET(moe, read_mixtral(config, ffn));
  } else if (model_type == "qwen2_moe" || model_type == "qwen3_moe") {
    TROUPE_TRY_SET(moe, read_qwen(config, model_type == "qwen2_moe", layers));
  }
  if (moe.experts_per_token > moe.experts) {
    return config.malformed("`num_experts_per_tok` " + std::to_string(moe.experts_per_token) +
                            " is more than the " + std::to_string(moe.experts) + " experts");
  }
  return moe;
}

void put_moe(nlohmann::ordered_json& config, const ModelSpec& spec) {
  const MoeSpec& moe = spec.moe;
  if (!moe.any()) return;
  config["num_experts_per_tok"] = moe.experts_per_token;
  if (moe.names == MoeNames::kMixtral) {
    config["num_local_experts"] = moe.experts;
    return;
  }
  config["num_experts"] = moe.experts;
  config["moe_intermediate_size"] = moe.ffn;
  config["norm_topk_prob"] = moe.norm_topk;
  config["decoder_sparse_step"] = 1;
  config["mlp_only_layers"] = moe.dense_layers;
  if (moe.has_shared()) config["shared_expert_intermediate_size"] = moe.shared_ffn;
}

}  // namespace troupe::model
