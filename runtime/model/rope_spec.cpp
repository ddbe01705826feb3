// The RoPE part of config.json, in both spellings: `rope_theta` next to `rope_scaling`
// (transformers 4), or one `rope_parameters` object (transformers 5).
#include "runtime/model/spec_json.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <tuple>

namespace troupe::model {
namespace {

using nlohmann::json;

Result<void> read_llama3(const ConfigReader& keys, RopeSpec& rope) {
  for (const char* key :
       {"low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    if (keys.find(key) == nullptr) return keys.malformed("needs `" + std::string(key) + "`");
  }
  TROUPE_TRY_SET(rope.low_freq_factor, keys.number("low_freq_factor", 1.0));
  TROUPE_TRY_SET(rope.high_freq_factor, keys.number("high_freq_factor", 4.0));
  TROUPE_TRY_SET(rope.original_context,
                 keys.whole("original_max_position_embeddings", 1, kContext_max));
  if (!(rope.low_freq_factor > 0 && rope.high_freq_factor > rope.low_freq_factor)) {
    return keys.malformed("needs 0 < low_freq_factor < high_freq_factor");
  }
  return {};
}

// A smaller factor could give angles outside the range of `sine_cosine` (rope_tables.cpp).
constexpr double kLongFactor_min = 0.5, kLongFactor_max = 1e6;

Result<std::vector<double>> read_factors(const ConfigReader& keys, const char* key) {
  const std::string name = "`" + std::string(key) + "`";
  const json* list = keys.find(key);
  if (list == nullptr) return keys.malformed("needs " + name);
  if (!list->is_array()) return keys.malformed(name + " is not a list of numbers");
  std::vector<double> factors;
  for (const json& item : *list) {
    const double factor = item.is_number() ? item.get<double>() : 0.0;
    if (!(factor >= kLongFactor_min && factor <= kLongFactor_max)) {
      return keys.malformed(name + " holds " + item.dump(), "a factor lies in [0.5, 1e6]");
    }
    factors.push_back(factor);
  }
  return factors;
}

Result<void> read_longrope(const ConfigReader& keys, RopeSpec& rope) {
  rope.kind = RopeSpec::Kind::kLongRope;
  TROUPE_TRY_SET(rope.short_factors, read_factors(keys, "short_factor"));
  TROUPE_TRY_SET(rope.long_factors, read_factors(keys, "long_factor"));
  TROUPE_TRY_SET(rope.original_context,
                 keys.whole("original_max_position_embeddings", 2, kContext_max, 0));
  TROUPE_TRY_SET(rope.factor, keys.number("factor", 0.0));
  TROUPE_TRY_SET(rope.attention_factor, keys.number("attention_factor", 0.0));
  if (keys.find("factor") != nullptr && !(rope.factor >= 1)) {
    return keys.malformed("`factor` must be at least 1");
  }
  if (keys.find("attention_factor") != nullptr && !(rope.attention_factor > 0)) {
    return keys.malformed("`attention_factor` must be above 0");
  }
  return {};
}

// Reads `longrope_factors`, a key of Troupe's own. "long" (the default): if the context is above
// the original length, the long factors apply at every position. "short": the context ends at the
// original length, and every sequence gets the short factors, as in transformers.
Result<bool> keeps_to_original(const ConfigReader& config, const ModelSpec& spec) {
  TROUPE_TRY_ASSIGN(choice, config.text("longrope_factors", "long"));
  if (choice != "long" && choice != "short") {
    return config.malformed("`longrope_factors` is \"" + choice + "\"", "offered are long, short");
  }
  const bool has_both = spec.rope.kind == RopeSpec::Kind::kLongRope;
  if (!has_both && config.find("longrope_factors") != nullptr) {
    return config.malformed("`longrope_factors` is there, but the rope type is not `longrope`");
  }
  return choice == "short" && spec.rope.extended;
}

// Derives the longrope values that depend on the rest of the file, as transformers does: a length
// next to the object takes precedence over one in it, and a missing `factor` is the ratio of the
// lengths.
Result<void> finish_longrope(const ConfigReader& config, const ModelSpec& spec, RopeSpec& rope) {
  if (rope.kind != RopeSpec::Kind::kLongRope) return {};
  std::int64_t& original = rope.original_context;
  TROUPE_TRY_SET(original,
                 config.whole("original_max_position_embeddings", 2, kContext_max, original));
  if (original == 0) {
    return config.malformed("rope type `longrope` needs `original_max_position_embeddings`");
  }
  const auto wanted = static_cast<std::size_t>(spec.rotary_dim / 2);
  const auto check = [&](const char* key, const std::vector<double>& factors) -> Result<void> {
    if (factors.size() == wanted) return {};
    return config.malformed(
        "`" + std::string(key) + "` has " + std::to_string(factors.size()) + " factors",
        "a head has " + std::to_string(wanted) +
            " pairs of numbers that rotate, and needs one for each");
  };
  TROUPE_TRY(check("short_factor", rope.short_factors));
  TROUPE_TRY(check("long_factor", rope.long_factors));
  rope.extended = spec.context > original;
  const auto length = static_cast<double>(original);
  if (rope.factor == 0) rope.factor = static_cast<double>(spec.context) / length;
  if (rope.attention_factor == 0) {
    rope.attention_factor =
        rope.factor <= 1 ? 1.0 : std::sqrt(1 + std::log(rope.factor) / std::log(length));
  }
  return {};
}

// The value of `rope_type`, or of `type` in older files.
Result<std::string> kind_name(const ConfigReader& keys) {
  if (keys.find("rope_type") != nullptr) return keys.text("rope_type", "");
  return keys.text("type", "default");
}

Result<void> read_kind(const ConfigReader& keys, RopeSpec& rope) {
  TROUPE_TRY_ASSIGN(kind, kind_name(keys));
  if (kind == "default") return {};
  if (kind == "longrope") return read_longrope(keys, rope);
  if (kind != "linear" && kind != "llama3") {
    return keys.unsupported("rope type `" + kind + "`",
                            "offered are default, linear, llama3, longrope");
  }
  if (keys.find("factor") == nullptr) return keys.malformed("needs `factor`");
  TROUPE_TRY_SET(rope.factor, keys.number("factor", 1.0));
  if (!(rope.factor >= 1)) return keys.malformed("`factor` must be at least 1");
  if (kind == "linear") {
    rope.kind = RopeSpec::Kind::kLinear;
    return {};
  }
  rope.kind = RopeSpec::Kind::kLlama3;
  return read_llama3(keys, rope);
}

// Reads one object of RoPE keys; absent ones keep the defaults in `rope`.
Result<void> read_object(const ConfigReader& keys, bool partial_offered, RopeSpec& rope) {
  TROUPE_TRY_SET(rope.theta, keys.number("rope_theta", rope.theta));
  TROUPE_TRY_SET(rope.partial, keys.number("partial_rotary_factor", rope.partial));
  if (rope.partial != 1.0 && !partial_offered) {
    return keys.unsupported("partial_rotary_factor other than 1");
  }
  if (!(rope.partial > 0 && rope.partial <= 1)) {
    return keys.malformed("`partial_rotary_factor` must lie in (0, 1]");
  }
  if (!(rope.theta > 1)) return keys.malformed("`rope_theta` must be above 1");
  return read_kind(keys, rope);
}

// transformers 5: one object, or one per layer type.
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

// Refuses a `rope_scaling` that says something else than the `rope_parameters` read before:
// programs read one or the other.
Result<void> no_other_rope(const ConfigReader& config,
                           const Family& family,
                           RopeSpec older,
                           const RopeSpec& read) {
  const json* const nested = config.find("rope_scaling");
  if (nested == nullptr || !nested->is_object()) return {};
  const ConfigReader keys(*nested, config.where() + ": rope_scaling");
  TROUPE_TRY(read_object(keys, family.partial_rotary, older));
  const auto all = [](const RopeSpec& rope) {
    return std::tie(rope.kind, rope.theta, rope.factor, rope.partial, rope.low_freq_factor,
                    rope.high_freq_factor, rope.original_context, rope.short_factors,
                    rope.long_factors, rope.attention_factor);
  };
  if (all(older) == all(read)) return {};
  return config.malformed(
      "`rope_parameters` and `rope_scaling` say different things, and programs read one or the "
      "other",
      "remove the one that is not meant");
}

}  // namespace

Result<void> read_rope(const ConfigReader& config, const Family& family, ModelSpec& spec) {
  if (family.sliding_theta > 0) {
    spec.sliding_rope = RopeSpec{};
    double& theta = spec.sliding_rope->theta;
    TROUPE_TRY_SET(theta, config.number("rope_local_base_freq", family.sliding_theta));
    if (!(theta > 1)) return config.malformed("`rope_local_base_freq` must be above 1");
  }
  // Keys next to the object are the older spelling, and the defaults for the newer one.
  TROUPE_TRY_SET(spec.rope.theta, config.number("rope_theta", family.rope_theta));
  TROUPE_TRY_SET(spec.rope.partial, config.number("partial_rotary_factor", 1.0));
  if (!(spec.rope.theta > 1)) return config.malformed("`rope_theta` must be above 1");
  if (spec.rope.partial != 1.0 && !family.partial_rotary) {
    return config.unsupported("partial_rotary_factor other than 1");
  }
  const RopeSpec usual = spec.rope;
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const json* nested = config.find(key);
    if (nested == nullptr) continue;
    if (!nested->is_object())
      return config.malformed("`" + std::string(key) + "` is not an object");
    const ConfigReader keys(*nested, config.where() + ": " + key);
    // If layers differ, `rope_scaling` applies to the full-attention ones.
    const bool scaling = std::string_view(key) == "rope_scaling";
    if (scaling)
      TROUPE_TRY(read_object(keys, family.partial_rotary, spec.rope));
    else
      TROUPE_TRY(read_parameters(config, family, keys, spec));
    if (!scaling) TROUPE_TRY(no_other_rope(config, family, usual, spec.rope));
    break;
  }
  const double dims = static_cast<double>(spec.head_dim) * spec.rope.partial;
  spec.rotary_dim = static_cast<std::int64_t>(dims);
  if (spec.rotary_dim < 2 || spec.rotary_dim % 2 != 0) {
    return config.malformed(
        "partial_rotary_factor rotates " + std::to_string(spec.rotary_dim) + " numbers of a head",
        "the count must be even and above 0");
  }
  if (spec.sliding_rope) TROUPE_TRY(finish_longrope(config, spec, *spec.sliding_rope));
  TROUPE_TRY(finish_longrope(config, spec, spec.rope));
  TROUPE_TRY_ASSIGN(short_ones, keeps_to_original(config, spec));
  if (!short_ones) return {};
  spec.context = spec.rope.original_context;
  spec.rope.extended = false;
  spec.rope.shortened = true;
  return {};
}

std::optional<std::string> longrope_note(const ModelSpec& spec) {
  if (!spec.rope.extended && !spec.rope.shortened) return std::nullopt;
  const std::string original = std::to_string(spec.rope.original_context);
  if (spec.rope.shortened) {
    return "longrope: the short factors turn all positions and the context ends at " + original +
           " tokens, as config.json has `longrope_factors` \"short\"; transformers does the same "
           "up to that length";
  }
  return "longrope: the long factors turn all positions, for the context of " +
         std::to_string(spec.context) + " tokens is above the original " + original +
         "; transformers takes the short ones for sequences of at most " + original +
         ": for these, put \"longrope_factors\": \"short\" into config.json";
}

}  // namespace troupe::model
