// Names and shapes of a layer's linear maps, as Hugging Face has them for Llama and Qwen2.
// Pure; any thread.
#include "runtime/model/linears.hpp"

namespace troupe::model {

LinearShape shape_of(const ModelSpec& spec, Linear linear) {
  switch (linear) {
    case Linear::kQ:
      return {spec.q_width(), spec.hidden};
    case Linear::kK:
    case Linear::kV:
      return {spec.kv_width(), spec.hidden};
    case Linear::kO:
      return {spec.hidden, spec.q_width()};
    case Linear::kGate:
    case Linear::kUp:
      return {spec.ffn, spec.hidden};
    case Linear::kDown:
      return {spec.hidden, spec.ffn};
  }
  return {};
}

const char* short_name(Linear linear) {
  constexpr std::array<const char*, kLinears> kNames = {
      "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};
  return kNames[index_of(linear)];
}

std::string module_name(std::int64_t layer, Linear linear) {
  const char* block = linear < Linear::kGate ? ".self_attn." : ".mlp.";
  return "model.layers." + std::to_string(layer) + block + short_name(linear);
}

}  // namespace troupe::model
