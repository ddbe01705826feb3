// The shape of a mixture-of-experts feed-forward part, in which a router picks a few of many small
// networks for each token. Read from config.json as part of ModelSpec. A value type.
//   p = softmax(W_router x); a token uses the k experts with the largest p, on a tie the lower ones
//   w_e = p_e, or with norm_topk p_e / (sum of p over the chosen experts)
//   y = sum over the chosen experts of w_e expert_e(x)  [+ sigmoid(g . x) shared_expert(x)]
// (Shazeer et al. 2017; Jiang et al. 2024 for Mixtral; Qwen2-MoE's shared expert.)
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::model {

class ConfigReader;

// The maximum number of experts in a layer. Team members keep a counter for each on the stack.
inline constexpr std::int64_t kExperts_max = 512;

// How a family names its tensors.
enum class MoeNames : std::uint8_t {
  kMixtral,  // block_sparse_moe.gate, block_sparse_moe.experts.E.{w1,w3,w2}
  kQwen,     // mlp.gate, mlp.experts.E.{gate,up,down}_proj, mlp.shared_expert[_gate]
};

struct MoeSpec {
  std::int64_t experts = 0;            // of a layer with experts; 0: all layers are dense
  std::int64_t experts_per_token = 0;  // k
  std::int64_t ffn = 0;                // width of one expert
  std::int64_t shared_ffn = 0;         // width of the expert that every token uses; 0: none
  bool norm_topk = false;              // the weights of the chosen experts add up to 1
  MoeNames names = MoeNames::kQwen;
  std::vector<std::int64_t> dense_layers;  // ascending; layers without experts

  bool any() const { return experts > 0; }
  bool has_shared() const { return shared_ffn > 0; }
  bool sparse(std::int64_t layer) const;  // whether the layer has experts
  // How many of the model's `layers` layers have experts.
  std::int64_t sparse_layers(std::int64_t layers) const;
  // The width of the widest network that all rows of a layer use: a dense layer's (`plain`) or the
  // shared expert's.
  std::int64_t dense_ffn(std::int64_t layers, std::int64_t plain) const;
  // Rows of the router's matrix: one per expert, then one for the shared expert's gate.
  std::int64_t router_rows() const { return experts + (has_shared() ? 1 : 0); }
  // Parameters in the feed-forward part of one layer with experts.
  std::int64_t layer_parameters(std::int64_t hidden) const;
  // How many of those one token uses.
  std::int64_t layer_active_parameters(std::int64_t hidden) const;
};

// Tensor names; `layer` and `expert` count from 0.
std::string router_name(MoeNames names, std::int64_t layer);
struct ExpertNames {
  std::string gate, up, down;
};
ExpertNames expert_names(MoeNames names, std::int64_t layer, std::int64_t expert);
ExpertNames shared_expert_names(std::int64_t layer);
std::string shared_gate_name(std::int64_t layer);
// All experts of a layer as two tensors, [experts, 2 ffn, hidden] and [experts, hidden, ffn]: the
// form that transformers 5 keeps in memory, and writes unless it converts back to the older names.
struct FusedNames {
  std::string gate_up, down;
};
FusedNames fused_names(std::int64_t layer);

// Reads the keys of a family whose `model_type` is "mixtral", "qwen2_moe" or "qwen3_moe"; any other
// has no experts. `ffn` is the config's intermediate_size. Same errors as parse_spec.
core::Result<MoeSpec> read_moe(const ConfigReader& config,
                               std::string_view model_type,
                               std::int64_t layers,
                               std::int64_t ffn);

}  // namespace troupe::model
