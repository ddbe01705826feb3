#include "runtime/model/families.hpp"

namespace troupe::model {
namespace {

constexpr Family kFamilies[] = {
    {.model_type = "llama",
     .language = "LlamaForCausalLM",
     .score = "LlamaForSequenceClassification",
     .context = 2048,
     .reads_attention_bias = true,
     .reads_mlp_bias = true},
    {.model_type = "mistral",
     .language = "MistralForCausalLM",
     .score = "MistralForSequenceClassification",
     .context = 131072,
     .windows = WindowRule::kAll,
     .window = 4096},
    {.model_type = "qwen2",
     .language = "Qwen2ForCausalLM",
     .score = "Qwen2ForSequenceClassification",
     .context = 32768,
     .windows = WindowRule::kUpper,
     .window = 4096,
     .qkv_bias = true},
    {.model_type = "qwen3",
     .language = "Qwen3ForCausalLM",
     .score = "Qwen3ForSequenceClassification",
     .context = 32768,
     .head_dim = 128,
     .windows = WindowRule::kUpper,
     .window = 4096,
     .reads_attention_bias = true,
     .qk_norm = true},
    {.model_type = "mixtral",
     .language = "MixtralForCausalLM",
     .score = "MixtralForSequenceClassification",
     .context = 131072,
     .rms_eps = 1e-5,
     .rope_theta = 1e6,
     .windows = WindowRule::kAll},
    {.model_type = "qwen2_moe",
     .language = "Qwen2MoeForCausalLM",
     .score = "Qwen2MoeForSequenceClassification",
     .context = 32768,
     .qkv_bias = true,
     .reads_qkv_bias = true},
    {.model_type = "qwen3_moe",
     .language = "Qwen3MoeForCausalLM",
     .score = "Qwen3MoeForSequenceClassification",
     .context = 32768,
     .reads_attention_bias = true,
     .qk_norm = true},
    {.model_type = "phi3",
     .language = "Phi3ForCausalLM",
     .score = "Phi3ForSequenceClassification",
     .context = 4096,
     .rms_eps = 1e-5,
     .windows = WindowRule::kAll,
     .fused_linears = true,
     .partial_rotary = true},
    {.model_type = "gemma2",
     .language = "Gemma2ForCausalLM",
     .score = "Gemma2ForSequenceClassification",
     .context = 8192,
     .head_dim = 256,
     .tied = true,
     .activation_key = "hidden_activation",
     .activation = "gelu_pytorch_tanh",
     .attention_softcap = 50,
     .final_softcap = 30,
     .windows = WindowRule::kPattern,
     .window = 4096,
     .pattern = 2,
     .reads_attention_bias = true,
     .norm_plus_one = true,
     .post_norms = true,
     .scaled_embedding = true,
     .reads_query_scale = true},
    // Gemma 3's config.json has attn_logit_softcapping, but its attention does not read the key.
    {.model_type = "gemma3_text",
     .language = "Gemma3ForCausalLM",
     .score = "Gemma3TextForSequenceClassification",
     .context = 131072,
     .rope_theta = 1e6,
     .head_dim = 256,
     .tied = true,
     .activation_key = "hidden_activation",
     .activation = "gelu_pytorch_tanh",
     .final_softcap = 0,
     .windows = WindowRule::kPattern,
     .window = 4096,
     .pattern = 6,
     .reads_attention_bias = true,
     .qk_norm = true,
     .norm_plus_one = true,
     .post_norms = true,
     .scaled_embedding = true,
     .reads_query_scale = true,
     .sliding_theta = 1e4},
};

}  // namespace

std::span<const Family> families() {
  return kFamilies;
}

const Family* family_of(std::string_view architecture) {
  for (const Family& family : kFamilies) {
    if (architecture == family.language || architecture == family.score) return &family;
  }
  return nullptr;
}

const Family* family_of_type(std::string_view model_type) {
  for (const Family& family : kFamilies) {
    if (model_type == family.model_type) return &family;
  }
  return nullptr;
}

std::string offered_architectures() {
  std::string list;
  for (const Family& family : kFamilies)
    list += std::string(list.empty() ? "" : ", ") + family.language + ", " + family.score;
  return list;
}

std::string offered_types() {
  std::string list;
  for (const Family& family : kFamilies)
    list += std::string(list.empty() ? "" : ", ") + family.model_type;
  return list;
}

}  // namespace troupe::model
