// The shape of the models that score in these tests.
#pragma once

#include "runtime/model/spec.hpp"

#include <cstdint>

namespace troupe::actors::reward {

inline model::ModelSpec tiny_body(std::int64_t context) {
  model::ModelSpec spec;
  spec.architecture = "LlamaForCausalLM";
  spec.layers = 2;
  spec.hidden = 32;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 8;
  spec.ffn = 48;
  spec.vocab = 257;
  spec.context = context;
  return spec;
}

}  // namespace troupe::actors::reward
