#include "runtime/model/moe_views.hpp"

#include <map>
#include <optional>
#include <utility>

namespace troupe::model {
namespace {

// What stands in a folder in place of a view of the layout; nothing when another tensor covers it.
using Replacements = std::map<std::string, std::optional<ParamView>, std::less<>>;

void fuse_layer(const ModelSpec& spec,
                const MoeOffsets& at,
                std::int64_t layer,
                Replacements& replaced) {
  const MoeSpec& moe = spec.moe;
  const FusedNames names = fused_names(layer);
  for (std::int64_t e = 0; e < moe.experts; ++e) {
    const ExpertNames expert = expert_names(moe.names, layer, e);
    for (const std::string& name : {expert.gate, expert.up, expert.down})
      replaced.emplace(name, std::nullopt);
  }
  const ExpertNames first = expert_names(moe.names, layer, 0);
  const std::int64_t down_count = moe.experts * spec.hidden * moe.ffn;
  replaced[first.gate] = ParamView{names.gate_up,
                                   {moe.experts, 2 * moe.ffn, spec.hidden},
                                   at.experts.front().gate,
                                   2 * down_count};
  replaced[first.down] = ParamView{
      names.down, {moe.experts, spec.hidden, moe.ffn}, at.experts.front().down, down_count};
}

}  // namespace

std::vector<ParamView> stored_views(const ModelSpec& spec,
                                    const ParamLayout& layout,
                                    const std::function<bool(const std::string&)>& stored) {
  Replacements replaced;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    if (!spec.moe.sparse(layer) || !stored(fused_names(layer).gate_up)) continue;
    const MoeOffsets& at = layout.layers[static_cast<std::size_t>(layer)].moe;
    fuse_layer(spec, at, layer, replaced);
    // Mixtral's router then goes by Qwen's name.
    const std::string router = router_name(spec.moe.names, layer);
    ParamView view = *layout.find(router);
    view.name = router_name(MoeNames::kQwen, layer);
    replaced[router] = std::move(view);
  }
  std::vector<ParamView> views;
  for (const ParamView& view : layout.views) {
    const auto found = replaced.find(view.name);
    if (found == replaced.end()) {
      views.push_back(view);
    } else if (found->second) {
      views.push_back(*found->second);
    }
  }
  return views;
}

}  // namespace troupe::model
