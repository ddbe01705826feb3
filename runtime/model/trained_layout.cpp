#include "runtime/model/trained_layout.hpp"

#include "runtime/core/edit_distance.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace troupe::model {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kAllLinear = "all-linear";

bool has_word(const std::string& name, const std::string& word) {
  return name.find(word) != std::string::npos;
}

// PEFT's rule: the word is the whole name, or its end after a dot.
bool ends_with_module(const std::string& name, const std::string& word) {
  return name == word || name.ends_with("." + word);
}

// The edit distance from `word` to `name`, or to the nearest of its dotted parts if that is closer.
std::size_t distance(const std::string& name, const std::string& word) {
  std::size_t best = core::edit_distance(name, word);
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    best = std::min(best, core::edit_distance(name.substr(begin, end - begin), word));
    begin = end + 1;
  }
  return best;
}

// Up to three names that the user may have meant.
std::string nearest(const Names& names, const std::string& word) {
  std::vector<std::pair<std::size_t, std::string>> order;
  for (const std::string& name : names)
    order.emplace_back(distance(name, word), name);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, order.size()); ++i)
    text += (i == 0 ? "" : ", ") + order[i].second;
  return text;
}

core::Failure unknown(const std::string& key,
                      const std::string& word,
                      const char* what,
                      const Names& names) {
  return core::fail(ErrorCode::kConfig,
                    "--" + key + " '" + word + "' matches no " + what + " of this model",
                    "the nearest are " + nearest(names, word));
}

Result<void> check_words(const std::vector<std::string>& words,
                         const std::string& key,
                         const char* what,
                         const Names& names,
                         bool (*matches)(const std::string&, const std::string&)) {
  for (const std::string& word : words) {
    const bool known = !word.empty() && std::any_of(names.begin(), names.end(), [&](const auto& n) {
      return matches(n, word);
    });
    if (!known) return unknown(key, word, what, names);
  }
  return {};
}

Names all_modules(const ModelSpec& spec) {
  Names names;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    for (const Linear linear : kAllLinears) {
      if (has_linear(spec, layer, linear)) names.push_back(module_name(spec, layer, linear));
    }
  }
  return names;
}

Names names_of(const ParamLayout& layout) {
  Names names;
  for (const ParamView& view : layout.views)
    names.push_back(view.name);
  return names;
}

Result<void> check_lora(const ModelSpec& spec, const LoraSettings& lora, const std::string& key) {
  if (!std::isfinite(lora.alpha) || lora.alpha <= 0) {
    return core::fail(ErrorCode::kConfig, "--" + key + ".lora.alpha must be above 0");
  }
  if (lora.target.empty()) {
    return core::fail(ErrorCode::kConfig, "--" + key + ".lora.target is empty",
                      "all-linear names every linear map");
  }
  for (const std::string& word : lora.target) {
    for (const std::string_view other : {"lm_head", "embed_tokens", "score"}) {
      if (word != other && !word.ends_with("." + std::string(other))) continue;
      return core::fail(
          ErrorCode::kConfig,
          "--" + key + ".lora.target '" + word + "': heads and embeddings have no adapters here",
          "name linear maps of the layers, or all-linear");
    }
  }
  Names modules = all_modules(spec);
  modules.emplace_back(kAllLinear);
  return check_words(lora.target, key + ".lora.target", "module", modules, ends_with_module);
}

}  // namespace

Result<std::shared_ptr<const ParamLayout>> trained_layout(const ModelSpec& spec,
                                                          const TrainedSet& set,
                                                          const std::string& key) {
  if (set.lora.rank > 0) TROUPE_TRY(check_lora(spec, set.lora, key));
  const Names names = names_of(ParamLayout(spec));
  TROUPE_TRY(check_words(set.freeze, key + ".freeze", "tensor name", names, has_word));
  const auto frozen = [&](const std::string& name) {
    return std::any_of(set.freeze.begin(), set.freeze.end(),
                       [&](const std::string& word) { return has_word(name, word); });
  };
  const auto keeps = [&](const std::string& name) {
    const bool base = set.lora.rank == 0 || name == kScoreWeight;
    return base && !frozen(name);
  };
  const auto rank = [&](std::int64_t layer, Linear linear) -> std::int64_t {
    const std::string module = module_name(spec, layer, linear);
    const auto& target = set.lora.target;
    const bool wanted = std::any_of(target.begin(), target.end(), [&](const std::string& word) {
      return word == kAllLinear || ends_with_module(module, word);
    });
    return wanted && !frozen(module + ".weight") ? set.lora.rank : 0;
  };
  auto layout = std::make_shared<const ParamLayout>(spec, LayoutChoice{keeps, rank});
  if (layout->views.empty()) {
    return core::fail(
        ErrorCode::kConfig,
        "--" + key + ".freeze leaves nothing to train" +
            (set.lora.rank > 0 ? " in the adapters of --" + key + ".lora.target" : ""));
  }
  return layout;
}

std::int64_t first_trained_layer(const ParamLayout& trained) {
  const auto has_any = [&](std::size_t layer) {
    const LayerOffsets& at = trained.layers[layer];
    const LayerAdapters& adapters = trained.adapters[layer];
    const bool linear = std::any_of(kAllLinears.begin(), kAllLinears.end(), [&](Linear l) {
      return at.of(l) >= 0 || adapters[index_of(l)].rank > 0;
    });
    return linear || at.has_vectors() || at.moe.any();
  };
  if (trained.embedding >= 0) return 0;
  std::size_t layer = 0;
  while (layer < trained.layers.size() && !has_any(layer))
    ++layer;
  return static_cast<std::int64_t>(layer);
}

}  // namespace troupe::model
