// The description of a model's architecture, read from a Hugging Face config.json. A value type.
// families.hpp lists the supported architectures as data; others are refused by name. The forward
// and backward passes read the fields here and never test for a family. A model ends in a language
// head (logits) or a score head (one number per token: reward models and critics).
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

// The parameters of rotary position embedding (RoPE).
struct RopeSpec {
  enum class Kind { kDefault, kLinear, kLlama3, kLongRope };
  Kind kind = Kind::kDefault;
  double theta = 10000.0;
  double factor = 1.0;
  double partial = 1.0;  // partial_rotary_factor: the fraction of a head that is rotated
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  std::int64_t original_context = 8192;
  // longrope: divisors of the rotary / 2 frequencies, one set for the original context and one for
  // a longer one. `extended`: the model's context is longer, so the long factors apply at all
  // positions.
  std::vector<double> short_factors, long_factors;
  bool extended = false;
  bool shortened = false;  // the context was cut to the original length, to use the short factors
  double attention_factor = 1.0;  // longrope: multiplies cosines and sines
};

// What follows the final norm: logits over the vocabulary, or one score (transformers'
// *ForSequenceClassification with one label).
enum class HeadKind { kLanguage, kScore };

// The activation of the gate in the feed-forward block: silu or gelu_pytorch_tanh.
using kernels::Activation;

struct ModelSpec {
  std::string architecture;  // "LlamaForCausalLM", "Qwen2ForSequenceClassification", ...
  HeadKind head = HeadKind::kLanguage;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;  // query heads
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;  // intermediate_size
  std::int64_t vocab = 0;
  std::int64_t context = 0;  // max_position_embeddings
  float rms_eps = 1e-5f;
  bool tied = false;      // the head is the embedding; never with a score head
  bool qkv_bias = false;  // Qwen2
  bool o_bias = false;
  bool mlp_bias = false;  // gate, up and down have a bias
  Activation activation = Activation::kSilu;
  bool qk_norm = false;         // each head of q and k is normed before rotation
  bool norm_plus_one = false;   // norms multiply by 1 + their weight
  bool post_norms = false;      // attention and feed-forward outputs are normed before the sum
  bool fused_linears = false;   // the file has q, k, v as one tensor, and gate, up as another
  float embed_scale = 1;        // multiplies the embeddings
  double query_scale = 0;       // attention scores are divided by its square root; 0: use head_dim
  float attention_softcap = 0;  // scores s become cap tanh(s / cap); 0: no cap
  float final_softcap = 0;      // the same for logits
  std::int64_t rotary_dim = 0;  // how many leading numbers of a head are rotated; 0: all
  std::int64_t window = 0;      // tokens that a row of a sliding layer sees, including its own
  std::vector<bool> sliding;    // by layer; empty: none
  RopeSpec rope;
  std::optional<RopeSpec> sliding_rope;  // of sliding layers, if it differs
  MoeSpec moe;  // experts in place of the feed-forward network; `ffn` is for dense layers
  // Mean and standard deviation of a reward model's scores, measured on its evaluation set in
  // training: the keys `mean` and `std` of config.json. Users of scores normalise by them; the
  // forward pass does not.
  double score_mean = 0, score_std = 1;
  std::vector<std::int32_t> eos;  // of config.json; the tokenizer and generation_config add more
  std::string config_json;        // the text as read, written back by save_model

  std::int64_t q_width() const { return heads * head_dim; }
  std::int64_t kv_width() const { return kv_heads * head_dim; }
  std::int64_t qkv_width() const { return q_width() + 2 * kv_width(); }
  std::int64_t rotary() const { return rotary_dim > 0 ? rotary_dim : head_dim; }
  bool slides(std::int64_t layer) const {
    return !sliding.empty() && sliding[static_cast<std::size_t>(layer)];
  }
  // The layer's window in tokens; 0: no limit.
  std::int64_t window_of(std::int64_t layer) const { return slides(layer) ? window : 0; }
  // The window if every layer has one, else 0 (no limit).
  std::int64_t window_of_all() const;
  LayerWindows layer_windows() const;
  const RopeSpec& rope_of(std::int64_t layer) const {
    return slides(layer) && sliding_rope ? *sliding_rope : rope;
  }
  float attention_scale() const;
  // The width of the widest network that all rows use: a dense layer's or the shared expert's. 0:
  // none.
  std::int64_t dense_ffn() const { return moe.any() ? moe.dense_ffn(layers, ffn) : ffn; }
  // Rows of the head's matrix: the vocabulary, or 1.
  std::int64_t head_rows() const { return head == HeadKind::kScore ? 1 : vocab; }
  std::int64_t parameter_count() const;
  // How many weights of the layers one token is multiplied by; counts only the experts that it
  // chooses.
  std::int64_t active_weights() const;
};

// Reads `folder`/config.json. Errors: kNotFound (no such folder or file), kData (malformed, out of
// range), kUnsupported (architecture, activation or RoPE kind, named).
core::Result<ModelSpec> read_spec(const std::filesystem::path& folder);
core::Result<ModelSpec> parse_spec(const std::string& config_json, const std::string& where);

// `pad_token_id` of the config.json that a spec was read from; -1 if it has none.
std::int32_t pad_token_of(const ModelSpec& spec);

// The text of a config.json, which transformers can open, for a spec that was not read from one.
std::string format_spec(const ModelSpec& spec);
// The text that save_model writes: config_json as it was read, or format_spec if there is none. For
// a score model, with the keys of a score head and the current mean and std.
std::string current_config(const ModelSpec& spec);

// The spec of the same model with a score head in place of its language head.
ModelSpec with_score_head(const ModelSpec& spec);

// A note for users of a longrope model whose context exceeds the original length, or did before it
// was cut: which factors apply, where transformers chooses differently, and how to get that choice.
std::optional<std::string> longrope_note(const ModelSpec& spec);

// Finds the folder of the model that a user names: a path to it, to a checkpoint or to a run (the
// newest model in its ckpt/), or OWNER/NAME[@REVISION] of a hub (names/locate.hpp: from its cache
// on this host, or downloaded).
core::Result<std::filesystem::path> resolve_model(const std::string& name_or_path);

// The rotary / 2 angular frequencies, scaled as `rope` says.
std::vector<float> rope_frequencies(const RopeSpec& rope, std::int64_t rotary);
// Fills tables [positions][rotary / 2] with the cosine and sine of position * frequency, times
// `attention_factor`.
void rope_tables(
    const RopeSpec& rope, std::int64_t rotary, std::int64_t positions, float* cos, float* sin);

}  // namespace troupe::model
