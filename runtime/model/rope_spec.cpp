// The RoPE part of config.json, in both spellings: `rope_theta` beside `rope_scaling`
// (transformers 4), or one `rope_parameters` object (transformers 5).
#include "runtime/model/spec_json.hpp"

#include <nlohmann/json.hpp>

namespace troupe::model {
namespace {

using core::Result;
using nlohmann::json;

Result<void> read_llama3(const ConfigReader& keys, RopeSpec& rope) {
  for (const char* key :
       {"low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    if (keys.find(key) == nullptr) return keys.malformed("needs `" + std::string(key) + "`");
  }
  TROUPE_TRY_ASSIGN(low, keys.number("low_freq_factor", 1.0));
  TROUPE_TRY_ASSIGN(high, keys.number("high_freq_factor", 4.0));
  TROUPE_TRY_ASSIGN(original, keys.whole("original_max_position_embeddings", 1, kContext_max));
  if (!(low > 0 && high > low)) {
    return keys.malformed("needs 0 < low_freq_factor < high_freq_factor");
  }
  rope.low_freq_factor = low;
  rope.high_freq_factor = high;
  rope.original_context = original;
  return {};
}

// `rope_type`, or `type` in older files.
Result<std::string> kind_name(const ConfigReader& keys) {
  if (keys.find("rope_type") != nullptr) return keys.text("rope_type", "");
  return keys.text("type", "default");
}

Result<void> read_kind(const ConfigReader& keys, RopeSpec& rope) {
  TROUPE_TRY_ASSIGN(kind, kind_name(keys));
  if (kind == "default") return {};
  if (kind != "linear" && kind != "llama3") {
    return keys.unsupported("rope type `" + kind + "`; offered are default, linear, llama3");
  }
  if (keys.find("factor") == nullptr) return keys.malformed("needs `factor`");
  TROUPE_TRY_ASSIGN(factor, keys.number("factor", 1.0));
  if (!(factor >= 1)) return keys.malformed("`factor` must be at least 1");
  rope.factor = factor;
  if (kind == "linear") {
    rope.kind = RopeSpec::Kind::kLinear;
    return {};
  }
  rope.kind = RopeSpec::Kind::kLlama3;
  return read_llama3(keys, rope);
}

}  // namespace

Result<RopeSpec> read_rope(const ConfigReader& config) {
  RopeSpec rope;
  TROUPE_TRY_ASSIGN(theta, config.number("rope_theta", rope.theta));
  rope.theta = theta;
  TROUPE_TRY_ASSIGN(partial, config.number("partial_rotary_factor", 1.0));
  if (partial != 1.0) return config.unsupported("partial_rotary_factor other than 1");
  const char* key = config.find("rope_parameters") != nullptr ? "rope_parameters" : "rope_scaling";
  const json* nested = config.find(key);
  if (nested != nullptr) {
    if (!nested->is_object())
      return config.malformed("`" + std::string(key) + "` is not an object");
    const ConfigReader keys(*nested, config.where() + ": " + key);
    if (nested->contains("full_attention") || nested->contains("sliding_attention")) {
      return keys.unsupported("RoPE by layer type");
    }
    TROUPE_TRY_ASSIGN(own_theta, keys.number("rope_theta", rope.theta));
    TROUPE_TRY_ASSIGN(own_partial, keys.number("partial_rotary_factor", 1.0));
    if (own_partial != 1.0) return keys.unsupported("partial_rotary_factor other than 1");
    rope.theta = own_theta;
    TROUPE_TRY(read_kind(keys, rope));
  }
  if (!(rope.theta > 1)) return config.malformed("`rope_theta` must be above 1");
  return rope;
}

}  // namespace troupe::model
