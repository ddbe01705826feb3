#include "runtime/model/linears.hpp"

namespace troupe::model {
namespace {

bool is_fused_away(const ModelSpec& spec, Linear linear) {
  const bool second = linear == Linear::kK || linear == Linear::kV || linear == Linear::kUp;
  return spec.fused_linears && second;
}

}  // namespace

LinearShape shape_of(const ModelSpec& spec, Linear linear) {
  if (is_fused_away(spec, linear)) return {0, spec.hidden};
  switch (linear) {
    case Linear::kQ:
      return {spec.fused_linears ? spec.qkv_width() : spec.q_width(), spec.hidden};
    case Linear::kK:
    case Linear::kV:
      return {spec.kv_width(), spec.hidden};
    case Linear::kO:
      return {spec.hidden, spec.q_width()};
    case Linear::kGate:
    case Linear::kUp:
      return {spec.fused_linears ? 2 * spec.ffn : spec.ffn, spec.hidden};
    case Linear::kDown:
      return {spec.hidden, spec.ffn};
  }
  return {};
}

bool has_linear(const ModelSpec& spec, std::int64_t layer, Linear linear) {
  const bool of_experts = linear >= Linear::kGate && spec.moe.sparse(layer);
  return !is_fused_away(spec, linear) && !of_experts;
}

const char* short_name(const ModelSpec& spec, Linear linear) {
  constexpr std::array<const char*, kLinears> kNames = {
      "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};
  if (spec.fused_linears && linear == Linear::kQ) return "qkv_proj";
  if (spec.fused_linears && linear == Linear::kGate) return "gate_up_proj";
  return kNames[index_of(linear)];
}

std::string module_name(const ModelSpec& spec, std::int64_t layer, Linear linear) {
  const char* block = linear < Linear::kGate ? ".self_attn." : ".mlp.";
  return "model.layers." + std::to_string(layer) + block + short_name(spec, linear);
}

}  // namespace troupe::model
