#include "runtime/learn/optim/param_groups.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace troupe::learn {
namespace {

core::Failure bad_group(const std::string& text, const std::string& why) {
  return core::fail(core::ErrorCode::kConfig, "'" + text + "' " + why,
                    "give a part of tensor names, then lr=SHARE of the learning rate or "
                    "weight_decay=NUMBER, as in \"norm weight_decay=0,embed_tokens lr=0.1\"");
}

// The number after `name=` in `word`.
std::optional<double> number_of(const std::string& word, const std::string& name) {
  if (!word.starts_with(name + "=")) return std::nullopt;
  std::istringstream text(word.substr(name.size() + 1));
  double value = 0;
  if (!(text >> value) || !text.eof() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

int group_of(const std::vector<ParamGroup>& groups, const std::string& tensor) {
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const ParamGroup& group) {
    return tensor.find(group.word) != std::string::npos;
  });
  return found == groups.end() ? -1 : static_cast<int>(found - groups.begin());
}

core::Result<std::vector<ParamGroup>> parse_param_groups(const std::vector<std::string>& texts) {
  std::vector<ParamGroup> groups;
  for (const std::string& text : texts) {
    std::istringstream words(text);
    ParamGroup group;
    words >> group.word;
    if (group.word.empty() || group.word.find('=') != std::string::npos)
      return bad_group(text, "names no tensors");
    bool set = false;
    for (std::string word; words >> word; set = true) {
      if (const auto scale = number_of(word, "lr"); scale && *scale >= 0) {
        group.lr_scale = *scale;
      } else if (const auto decay = number_of(word, "weight_decay"); decay && *decay >= 0) {
        group.weight_decay = *decay;
      } else {
        return bad_group(text, "has the setting '" + word + "'");
      }
    }
    if (!set) return bad_group(text, "sets nothing");
    groups.push_back(std::move(group));
  }
  return groups;
}

core::Result<void> check_param_groups(const std::vector<ParamGroup>& groups,
                                      const model::ParamLayout& trained,
                                      const std::string& key) {
  std::vector<bool> used(groups.size());
  for (const model::ParamView& view : trained.views) {
    if (const int group = group_of(groups, view.name); group >= 0)
      used[static_cast<std::size_t>(group)] = true;
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (used[i]) continue;
    return core::fail(
        core::ErrorCode::kConfig,
        key + ": '" + groups[i].word + "' matches no trained tensor that earlier groups leave",
        "names are those of the tensors in the model's safetensors files");
  }
  return {};
}

KindSpans::KindSpans(const model::ParamLayout& trained, const KindOf& kind_of) {
  for (const model::ParamView& view : trained.views) {
    const Span span{view.offset + view.count, kind_of(view)};
    if (!spans_.empty() && spans_.back().kind == span.kind)
      spans_.back().end = span.end;
    else
      spans_.push_back(span);
  }
}

void KindSpans::each(core::Range elements, const Use& use) const {
  auto span = std::upper_bound(spans_.begin(), spans_.end(), elements.begin,
                               [](std::int64_t at, const Span& one) { return at < one.end; });
  for (std::int64_t begin = elements.begin; begin < elements.end && span != spans_.end(); ++span) {
    const std::int64_t end = std::min(elements.end, span->end);
    use({begin, end}, span->kind);
    begin = end;
  }
}

}  // namespace troupe::learn
