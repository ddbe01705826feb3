// Reads from config.json which layers have a sliding attention window, and its length in tokens.
// The layers come from `layer_types` if present, else from the family's rule (families.hpp).
#include "runtime/model/spec_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <vector>

namespace troupe::model {
namespace {

using nlohmann::json;

// Reads `layer_types`: one word per layer.
Result<void> read_types(const ConfigReader& config, const json& types, ModelSpec& spec) {
  if (!types.is_array() || types.size() != static_cast<std::size_t>(spec.layers)) {
    return config.malformed("`layer_types` is not a list of num_hidden_layers words");
  }
  for (const json& type : types) {
    const auto* const word = type.get_ptr<const std::string*>();
    const bool sliding = word != nullptr && *word == "sliding_attention";
    if (!sliding && (word == nullptr || *word != "full_attention")) {
      return config.unsupported("layer type " + type.dump(),
                                "offered are full_attention, sliding_attention");
    }
    spec.sliding.push_back(sliding);
  }
  return {};
}

Result<std::int64_t> first_sliding(const ConfigReader& config, const ModelSpec& spec) {
  TROUPE_TRY_ASSIGN(on, config.flag("use_sliding_window", false));
  if (!on) return spec.layers;
  return config.whole("max_window_layers", 0, kLayers_max, 28);
}

Result<void> read_rule(const ConfigReader& config, const Family& family, ModelSpec& spec) {
  std::int64_t pattern = family.pattern, first = 0;
  if (family.windows == WindowRule::kPattern) {
    TROUPE_TRY_SET(pattern, config.whole("sliding_window_pattern", 1, kLayers_max, pattern));
  }
  if (family.windows == WindowRule::kUpper) {
    TROUPE_TRY_SET(first, first_sliding(config, spec));
  }
  for (std::int64_t i = 0; i < spec.layers; ++i)
    spec.sliding.push_back(i >= first && (pattern == 0 || (i + 1) % pattern != 0));
  return {};
}

bool contains(const std::vector<bool>& flags, bool flag) {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

// For families in which all layers have the window, or none (`window` 0). Refuses a `layer_types`
// that says otherwise.
Result<void> slide_all(const ConfigReader& config, std::int64_t window, ModelSpec& spec) {
  const bool agrees = !contains(spec.sliding, window == 0);
  if (config.find("layer_types") != nullptr && !agrees) {
    return config.unsupported(
        "layer_types that differ from sliding_window, which is for all layers");
  }
  spec.sliding.assign(window > 0 ? static_cast<std::size_t>(spec.layers) : 0, true);
  spec.window = window;
  return {};
}

}  // namespace

Result<void> read_windows(const ConfigReader& config, const Family& family, ModelSpec& spec) {
  const json* types = config.find("layer_types");
  if (family.windows == WindowRule::kNone) {
    TROUPE_TRY_ASSIGN(on, config.flag("use_sliding_window", false));
    if (on) return config.unsupported("use_sliding_window = true", "offered is false");
    if (types != nullptr) TROUPE_TRY(read_types(config, *types, spec));
    if (contains(spec.sliding, true)) {
      return config.unsupported("layer type sliding_attention", "offered is full_attention");
    }
    spec.sliding.clear();
    return {};
  }
  if (types != nullptr) {
    TROUPE_TRY(read_types(config, *types, spec));
  } else {
    TROUPE_TRY(read_rule(config, family, spec));
  }
  if (family.windows != WindowRule::kAll && !contains(spec.sliding, true)) {
    spec.sliding.clear();
    return {};  // the window is not used
  }
  const bool off = config.is_null("sliding_window");
  TROUPE_TRY_ASSIGN(window, config.whole("sliding_window", 1, kContext_max, family.window));
  if (family.windows == WindowRule::kAll) return slide_all(config, off ? 0 : window, spec);
  if (off || window == 0) return config.malformed("has sliding layers, and no `sliding_window`");
  spec.window = window;
  return {};
}

}  // namespace troupe::model
