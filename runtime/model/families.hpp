// The table of model families that the forward pass supports: their names in config.json, the
// defaults of optional keys, and the differences from Llama. The forward and backward passes never
// test for a family; they read the flags of ModelSpec, which the config.json readers fill in from
// here. Constant data, safe on any thread.
#pragma once

#include "runtime/model/spec.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace troupe::model {

// Which layers see only the last `sliding_window` tokens when `layer_types` is absent.
enum class WindowRule {
  kNone,     // none; the key is not read
  kAll,      // all, or none if sliding_window is null (Mistral, Phi-3)
  kUpper,    // from layer max_window_layers on, if use_sliding_window is true (Qwen)
  kPattern,  // all but every n-th (Gemma)
};

struct Family {
  const char* model_type;  // "llama"
  const char* language;    // "LlamaForCausalLM"
  const char* score;       // "LlamaForSequenceClassification"
  // The defaults of transformers for absent keys.
  std::int64_t context = 0;
  double rms_eps = 1e-6;
  double rope_theta = 10000.0;
  std::int64_t head_dim = 0;  // 0: hidden_size / num_attention_heads
  bool tied = false;
  const char* activation_key = "hidden_act";
  const char* activation = "silu";
  double attention_softcap = -1, final_softcap = -1;  // 0: no cap; negative: the key is not read
  WindowRule windows = WindowRule::kNone;
  std::int64_t window = 0;   // sliding_window
  std::int64_t pattern = 0;  // sliding_window_pattern: every n-th layer sees all tokens
  // Flags of ModelSpec. `reads_...`: the family's config.json has a key for it.
  bool qkv_bias = false;        // the linear maps to q, k and v have a bias
  bool reads_qkv_bias = false;  // the default of the key is `qkv_bias`
  bool reads_attention_bias = false, reads_mlp_bias = false;
  bool qk_norm = false;
  bool norm_plus_one = false, post_norms = false, scaled_embedding = false;  // Gemma
  bool reads_query_scale = false;  // query_pre_attn_scalar; the default is 256
  bool fused_linears = false;
  bool partial_rotary = false;  // partial_rotary_factor is read
  double sliding_theta = 0;     // above 0: sliding layers have their own RoPE, with this default
};

std::span<const Family> families();
// Finds a family by an architecture name, with either head; null when it is not supported.
const Family* family_of(std::string_view architecture);
const Family* family_of_type(std::string_view model_type);
// Lists for error messages: "LlamaForCausalLM, ..." and "llama, ...".
std::string offered_architectures();
std::string offered_types();

}  // namespace troupe::model
