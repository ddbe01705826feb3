#include "runtime/model/peft_targets.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::model {
namespace {

using nlohmann::json;

// PEFT's rule: the word is the whole name, or its end after a dot.
bool matches_any(const std::string& module, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return module == word || module.ends_with("." + word);
  });
}

core::Result<void> read_words(const ConfigReader& config,
                              const char* key,
                              std::vector<std::string>& words) {
  for (const json& word : *config.find(key)) {
    if (!word.is_string()) {
      return config.malformed("`" + std::string(key) + "` is no list of modules");
    }
    words.push_back(word.get<std::string>());
  }
  return {};
}

}  // namespace

core::Result<PeftTargets> PeftTargets::read(const ConfigReader& config) {
  PeftTargets out;
  const json* const wanted = config.find("target_modules");
  out.known_ = wanted != nullptr;
  if (wanted != nullptr && wanted->is_string()) {
    out.all_ = *wanted == "all-linear";
    out.known_ = out.all_;
  } else if (wanted != nullptr) {
    TROUPE_TRY(read_words(config, "target_modules", out.words_));
  }
  if (const json* const left_out = config.find("exclude_modules"); left_out != nullptr) {
    if (left_out->is_string()) out.known_ = false;
    if (!left_out->is_string()) TROUPE_TRY(read_words(config, "exclude_modules", out.excluded_));
  }
  const json* const layers = config.find("layers_to_transform");
  if (layers == nullptr) return out;
  for (const json& layer : layers->is_array() ? *layers : json::array({*layers})) {
    if (!layer.is_number_integer()) {
      return config.malformed("`layers_to_transform` is no list of layers");
    }
    out.layers_.push_back(layer.get<std::int64_t>());
  }
  return out;
}

bool PeftTargets::have(const std::string& module, std::int64_t layer) const {
  if (!layers_.empty() && std::find(layers_.begin(), layers_.end(), layer) == layers_.end()) {
    return false;
  }
  return (all_ || matches_any(module, words_)) && !matches_any(module, excluded_);
}

bool is_head_or_embedding(const std::string& module) {
  for (const char* const name : {"lm_head", "embed_tokens"}) {
    if (module == name || module.ends_with("." + std::string(name)) ||
        module.find(std::string(name) + ".") != module.npos) {
      return true;
    }
  }
  return false;
}

}  // namespace troupe::model
