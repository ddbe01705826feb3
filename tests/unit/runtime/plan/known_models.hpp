// The shapes of published models, as in their config.json.
#pragma once

#include "runtime/model/spec.hpp"

#include <cstdint>
#include <string>

namespace troupe::plan {

struct KnownShape {
  std::int64_t layers, hidden, heads, kv_heads, ffn, vocab, context;
};

inline model::ModelSpec known_spec(const std::string& architecture, const KnownShape& shape) {
  model::ModelSpec spec;
  spec.architecture = architecture;
  spec.layers = shape.layers;
  spec.hidden = shape.hidden;
  spec.heads = shape.heads;
  spec.kv_heads = shape.kv_heads;
  spec.head_dim = shape.hidden / shape.heads;
  spec.ffn = shape.ffn;
  spec.vocab = shape.vocab;
  spec.context = shape.context;
  spec.qkv_bias = architecture == "Qwen2ForCausalLM";
  return spec;
}

inline model::ModelSpec llama3_70b() {
  return known_spec("LlamaForCausalLM", {80, 8192, 64, 8, 28672, 128256, 8192});
}
inline model::ModelSpec llama3_8b() {
  return known_spec("LlamaForCausalLM", {32, 4096, 32, 8, 14336, 128256, 8192});
}
inline model::ModelSpec codellama_34b() {
  return known_spec("LlamaForCausalLM", {48, 8192, 64, 8, 22016, 32000, 16384});
}
inline model::ModelSpec qwen25_7b() {
  return known_spec("Qwen2ForCausalLM", {28, 3584, 28, 4, 18944, 152064, 32768});
}

}  // namespace troupe::plan
