// What a model is made of, read from a Hugging Face config.json. A value type.
// What is offered stands in families.hpp, as data; other architectures are refused by name. The
// forward and backward passes read the fields here and know no family. A model ends in a language
// head (logits) or in a score head (one number a token: reward models and critics).
#pragma once

#include "kernels/row_shapes.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/layer_windows.hpp"
#include "runtime/model/moe_spec.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe::model {

struct RopeSpec {
  enum class Kind { kDefault, kLinear, kLlama3, kLongRope };
  Kind kind = Kind::kDefault;
  double theta = 10000.0;
  double factor = 1.0;
  double partial = 1.0;  // partial_rotary_factor: the share of a head's numbers that turn
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  std::int64_t original_context = 8192;
  // longrope: what divides each of the rotary / 2 frequencies, within the original context and in a
  // longer one. `extended` picks the set for all positions: the model's context is the longer one.
  std::vector<double> short_factors, long_factors;
  bool extended = false;
  bool shortened = false;  // the context was cut to the original one for the short factors' sake
  double attention_factor = 1.0;  // longrope: cosines and sines are multiplied by it
};

// What follows the final norm: the logits of the vocabulary, or one score (transformers'
// *ForSequenceClassification with one label).
enum class HeadKind { kLanguage, kScore };

// Of the gate in the feed-forward block: silu, or gelu_pytorch_tanh.
using kernels::Activation;

struct ModelSpec {
  std::string architecture;  // "LlamaForCausalLM", "Qwen2ForSequenceClassification", ...
  HeadKind head = HeadKind::kLanguage;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;
  std::int64_t vocab = 0;
  std::int64_t context = 0;  // max_position_embeddings
  float rms_eps = 1e-5f;
  bool tied = false;      // the head is the embedding; never with a score head
  bool qkv_bias = false;  // Qwen2
  bool o_bias = false;
  bool mlp_bias = false;
  Activation activation = Activation::kSilu;
  bool qk_norm = false;         // each head of q and k is normed before it turns
  bool norm_plus_one = false;   // norms multiply by 1 + their weight
  bool post_norms = false;      // attention and feed-forward are normed again before they are added
  bool fused_linears = false;   // the file has q, k, v as one tensor, and gate and up
  float embed_scale = 1;        // of the embeddings
  double query_scale = 0;       // scores are divided by its root; 0: by that of head_dim
  float attention_softcap = 0;  // scores s become cap tanh(s / cap); 0: they stay
  float final_softcap = 0;      // the same of logits
  std::int64_t rotary_dim = 0;  // the first numbers of a head turn; 0: all
  std::int64_t window = 0;      // tokens that a sliding layer sees, the own one among them
  std::vector<bool> sliding;    // by layer; empty: none
  RopeSpec rope;
  std::optional<RopeSpec> sliding_rope;  // of sliding layers, where it is another
  MoeSpec moe;  // experts in place of the feed-forward network; `ffn` is that of dense layers
  // Of a reward model's scores over its evaluation set, as its training found them: the keys `mean`
  // and `std` of config.json. Users of scores subtract and divide; the forward does not.
  double score_mean = 0, score_std = 1;
  std::vector<std::int32_t>
      eos;                  // of config.json; the tokenizer's and generation_config's add to it
  std::string config_json;  // the text as read, written back by save_model

  std::int64_t q_width() const { return heads * head_dim; }
  std::int64_t kv_width() const { return kv_heads * head_dim; }
  std::int64_t qkv_width() const { return q_width() + 2 * kv_width(); }
  std::int64_t rotary() const { return rotary_dim > 0 ? rotary_dim : head_dim; }
  bool slides(std::int64_t layer) const {
    return !sliding.empty() && sliding[static_cast<std::size_t>(layer)];
  }
  // Tokens that the layer's attention looks back on; 0: all.
  std::int64_t window_of(std::int64_t layer) const { return slides(layer) ? window : 0; }
  // How far the model looks back: the window when every layer has one; 0 (all tokens) otherwise.
  std::int64_t window_of_all() const;
  LayerWindows layer_windows() const;
  const RopeSpec& rope_of(std::int64_t layer) const {
    return slides(layer) && sliding_rope ? *sliding_rope : rope;
  }
  float attention_scale() const;
  // The widest network that all rows pass: of a dense layer, or the shared expert's. 0: none.
  std::int64_t dense_ffn() const { return moe.any() ? moe.dense_ffn(layers, ffn) : ffn; }
  // Rows of the head's matrix: the vocabulary, or 1.
  std::int64_t head_rows() const { return head == HeadKind::kScore ? 1 : vocab; }
  std::int64_t parameter_count() const;
  // How many weights of the layers one token is multiplied by; of the experts, those it chooses.
  std::int64_t active_weights() const;
};

// Reads `folder`/config.json. Errors: kNotFound (no such folder or file), kData (malformed, out of
// range), kUnsupported (architecture, activation or RoPE kind, named).
core::Result<ModelSpec> read_spec(const std::filesystem::path& folder);
core::Result<ModelSpec> parse_spec(const std::string& config_json, const std::string& where);

// A config.json for a spec that was not read from one (transformers opens it).
std::string format_spec(const ModelSpec& spec);
// The text that save_model writes: config_json as it was read (else format_spec) with what a run
// may have changed put in: mean and std of a score model.
std::string current_config(const ModelSpec& spec);

// The same body with a score head in place of the language head.
ModelSpec with_score_head(const ModelSpec& spec);

// Of a longrope model whose context goes, or went, beyond the original length: which factors it is
// computed with, where transformers' choice differs, and how to have that one. A line for users.
std::optional<std::string> longrope_note(const ModelSpec& spec);

// A folder from a user's word: a path, or org/name looked up in the local hub cache
// ($HF_HUB_CACHE, $HF_HOME/hub, ~/.cache/huggingface/hub; refs/main, then newest snapshot).
core::Result<std::filesystem::path> resolve_model(const std::string& name_or_path);

// The rotary / 2 angular frequencies, scaled as `rope` says.
std::vector<float> rope_frequencies(const RopeSpec& rope, std::int64_t rotary);
// Tables [positions][rotary / 2] of cos and sin of position * frequency in f32.
void rope_tables(
    const RopeSpec& rope, std::int64_t rotary, std::int64_t positions, float* cos, float* sin);

}  // namespace troupe::model
