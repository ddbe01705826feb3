// The table of model families that the forward pass supports: the names in config.json, the
// defaults of keys that it may leave out, and the differences from Llama. The forward and backward
// passes never test for a family; they read the flags of ModelSpec, which spec.cpp fills in from
// here. Constant; any thread.
#pragma once

#include "runtime/model/spec.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace troupe::model {

// Which layers see only the last `sliding_window` tokens, where `layer_types` does not say.
enum class WindowRule {
  kNone,     // none; the key is not read
  kAll,      // all, unless sliding_window is null (Mistral, Phi-3)
  kUpper,    // those from max_window_layers on, when use_sliding_window (Qwen)
  kPattern,  // all but every n-th (Gemma)
};

struct Family {
  const char* model_type;  // "llama"
  const char* language;    // "LlamaForCausalLM"
  const char* score;       // "LlamaForSequenceClassification"
  // Defaults of transformers for keys that are absent.
  std::int64_t context = 0;
  double rms_eps = 1e-6;
  double rope_theta = 10000.0;
  std::int64_t head_dim = 0;  // 0: hidden_size / num_attention_heads
  bool tied = false;
  const char* activation_key = "hidden_act";
  const char* activation = "silu";
  double attention_softcap = -1, final_softcap = -1;  // 0: none; below: the key is not read
  WindowRule windows = WindowRule::kNone;
  std::int64_t window = 0;  // sliding_window
  std::int64_t pattern = 0;
  // Flags of ModelSpec.
  bool qkv_bias = false;        // always; the keys below are read where they are marked
  bool reads_qkv_bias = false;  // by default qkv_bias
  bool reads_attention_bias = false, reads_mlp_bias = false;
  bool qk_norm = false;
  bool norm_plus_one = false, post_norms = false, scaled_embedding = false;  // Gemma
  bool reads_query_scale = false;  // query_pre_attn_scalar, by default 256
  bool fused_linears = false;
  bool partial_rotary = false;  // partial_rotary_factor is read
  double sliding_theta = 0;     // above 0: sliding layers have RoPE of their own, this its default
};

std::span<const Family> families();
// By the name of an architecture, either head; null when it is not offered.
const Family* family_of(std::string_view architecture);
const Family* family_of_type(std::string_view model_type);
// "LlamaForCausalLM, ...", and "llama, ...", for messages.
std::string offered_architectures();
std::string offered_types();

}  // namespace troupe::model
