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

// One object of RoPE's keys onto the defaults in `rope`.
Result<void> read_object(const ConfigReader& keys, bool partial_offered, RopeSpec& rope) {
  TROUPE_TRY_ASSIGN(theta, keys.number("rope_theta", rope.theta));
  TROUPE_TRY_ASSIGN(partial, keys.number("partial_rotary_factor", rope.partial));
  if (partial != 1.0 && !partial_offered) {
    return keys.unsupported("partial_rotary_factor other than 1");
  }
  if (!(partial > 0 && partial <= 1)) {
    return keys.malformed("`partial_rotary_factor` must lie in (0, 1]");
  }
  if (!(theta > 1)) return keys.malformed("`rope_theta` must be above 1");
  rope.theta = theta;
  rope.partial = partial;
  return read_kind(keys, rope);
}

// transformers 5: one object, or one for each type of layers.
Result<void> read_parameters(const ConfigReader& config,
                             const Family& family,
                             const ConfigReader& keys,
                             ModelSpec& spec) {
  const char* kTypes[] = {"full_attention", "sliding_attention"};
  if (keys.find(kTypes[0]) == nullptr && keys.find(kTypes[1]) == nullptr) {
    if (spec.sliding_rope) {
      return keys.malformed("needs `full_attention` and `sliding_attention`");
    }
    return read_object(keys, family.partial_rotary, spec.rope);
  }
  if (!spec.sliding_rope) return keys.unsupported("RoPE by layer type");
  for (const char* type : kTypes) {
    const json* own = keys.find(type);
    if (own == nullptr) continue;
    if (!own->is_object()) return keys.malformed("`" + std::string(type) + "` is not an object");
    TROUPE_TRY(read_object(ConfigReader(*own, config.where() + ": rope_parameters: " + type),
                           family.partial_rotary,
                           type == kTypes[0] ? spec.rope : *spec.sliding_rope));
  }
  return {};
}

}  // namespace

Result<void> read_rope(const ConfigReader& config, const Family& family, ModelSpec& spec) {
  spec.rope.theta = family.rope_theta;
  if (family.sliding_theta > 0) {
    spec.sliding_rope = RopeSpec{};
    TROUPE_TRY_ASSIGN(theta, config.number("rope_local_base_freq", family.sliding_theta));
    if (!(theta > 1)) return config.malformed("`rope_local_base_freq` must be above 1");
    spec.sliding_rope->theta = theta;
  }
  // The keys beside the object are the older spelling, and defaults of the newer one.
  TROUPE_TRY_ASSIGN(theta, config.number("rope_theta", spec.rope.theta));
  TROUPE_TRY_ASSIGN(partial, config.number("partial_rotary_factor", 1.0));
  if (!(theta > 1)) return config.malformed("`rope_theta` must be above 1");
  if (partial != 1.0 && !family.partial_rotary) {
    return config.unsupported("partial_rotary_factor other than 1");
  }
  spec.rope.theta = theta;
  spec.rope.partial = partial;
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const json* nested = config.find(key);
    if (nested == nullptr) continue;
    if (!nested->is_object())
      return config.malformed("`" + std::string(key) + "` is not an object");
    const ConfigReader keys(*nested, config.where() + ": " + key);
    // Where layers differ, `rope_scaling` speaks of the full ones.
    const bool scaling = std::string_view(key) == "rope_scaling";
    if (scaling)
      TROUPE_TRY(read_object(keys, family.partial_rotary, spec.rope));
    else
      TROUPE_TRY(read_parameters(config, family, keys, spec));
    break;
  }
  const double dims = static_cast<double>(spec.head_dim) * spec.rope.partial;
  spec.rotary_dim = static_cast<std::int64_t>(dims);
  if (spec.rotary_dim < 2 || spec.rotary_dim % 2 != 0) {
    return config.malformed("partial_rotary_factor turns " + std::to_string(spec.rotary_dim) +
                            " numbers of a head, which is odd or none");
  }
  return {};
}

}  // namespace troupe::model
