#include "runtime/model/peft_targets.hpp"

#include "runtime/parse/name_pattern.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace troupe::model {
namespace {

using nlohmann::json;

// PEFT's rule: the word is the whole name, or its end after a dot.
bool matches_any(const std::string& module, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return module == word || module.ends_with("." + word);
  });
}

// "all-linear", which PEFT takes in any case.
bool means_all(const json& value) {
  static constexpr std::string_view kAll = "all-linear";
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  return std::ranges::equal(text, kAll, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a | 32) : a) == b;
  });
}

}  // namespace

core::Result<PeftTargets::Choice> PeftTargets::read_choice(const ConfigReader& config,
                                                           const char* key) {
  Choice out;
  const json& value = *config.find(key);
  if (value.is_string()) {
    auto pattern = parse::NamePattern::compile(value.get<std::string>());
    if (!pattern) {
      return config.unsupported(
          "the regular expression in `" + std::string(key) + "`: " + pattern.error().message,
          "give the modules as a list of names there");
    }
    out.pattern = std::make_shared<const parse::NamePattern>(std::move(*pattern));
    return out;
  }
  for (const json& word : value) {
    if (!word.is_string()) {
      return config.malformed("`" + std::string(key) + "` is not a list of modules");
    }
    out.words.push_back(word.get<std::string>());
  }
  return out;
}

core::Result<PeftTargets> PeftTargets::read(const ConfigReader& config) {
  PeftTargets out;
  const json* const wanted = config.find("target_modules");
  out.known_ = wanted != nullptr;
  out.all_ = out.known_ && means_all(*wanted);
  if (out.known_ && !out.all_) {
    TROUPE_TRY_SET(out.wanted_, read_choice(config, "target_modules"));
  }
  const json* const left_out = config.find("exclude_modules");
  // PEFT takes an empty text for nothing.
  if (left_out != nullptr && *left_out != "") {
    TROUPE_TRY_SET(out.excluded_, read_choice(config, "exclude_modules"));
  }
  const json* const layers = config.find("layers_to_transform");
  if (layers == nullptr) return out;
  for (const json& layer : layers->is_array() ? *layers : json::array({*layers})) {
    if (!layer.is_number_integer()) {
      return config.malformed("`layers_to_transform` is not a list of layers");
    }
    out.layers_.push_back(layer.get<std::int64_t>());
  }
  return out;
}

core::Result<bool> PeftTargets::has(const Choice& choice, const std::string& module) {
  if (choice.pattern == nullptr) return matches_any(module, choice.words);
  auto matched = choice.pattern->matches(module);
  if (matched) return matched;
  return core::fail(
      matched.error().within("the regular expression of `target_modules` or "
                             "`exclude_modules`"));
}

core::Result<bool> PeftTargets::have(const std::string& module, std::int64_t layer) const {
  TROUPE_TRY_ASSIGN(left_out, has(excluded_, module));
  if (left_out) return false;
  const bool of_layer =
      layers_.empty() || std::find(layers_.begin(), layers_.end(), layer) != layers_.end();
  if (wanted_.pattern != nullptr) return has(wanted_, module);
  if (!of_layer) return false;
  return all_ || matches_any(module, wanted_.words);
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
