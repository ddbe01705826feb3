// Loads a model's weights from a Hugging Face folder: one safetensors file, or shards with their
// index. Refuses a folder that lacks a tensor of the model, has one with another shape, or has a
// tensor of an unknown name.
#include "runtime/core/pages.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/model/load_elements.hpp"
#include "runtime/model/weight_files.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace troupe::model {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHead = "lm_head.weight";
constexpr const char* kEmbedding = "model.embed_tokens.weight";

// The indices of element `at` of a tensor, such as "[row, column]".
std::string place_text(std::int64_t at, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> place(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; at /= shape[i])
    place[i] = at % shape[i];
  return shape_text(place);
}

// Refuses NaN and infinite weights here: otherwise every computation that uses them would fail,
// much later. `part`: elements of the buffer `data`, within the tensor.
Result<void> check_finite(const WeightFiles::Place& found,
                          const ParamView& view,
                          core::Range part,
                          const float* data) {
  const float* const end = data + part.end;
  const float* const wrong =
      std::find_if(data + part.begin, end, [](float value) { return !std::isfinite(value); });
  if (wrong == end) return {};
  return bad_file(found.file->path(),
                  "tensor " + view.name + " holds " + std::to_string(*wrong) + " at " +
                      place_text(wrong - data - view.offset, view.shape),
                  "every weight must be a finite number. Take an earlier checkpoint, or download "
                  "the file anew");
}

Result<void> read_tensor(const WeightFiles::Place& found,
                         const ParamView& view,
                         const ElementsToRead& read,
                         float* data) {
  if (found.tensor->shape != view.shape) {
    return bad_file(found.file->path(),
                    "tensor " + view.name + " has shape " + shape_text(found.tensor->shape),
                    "config.json makes it " + shape_text(view.shape));
  }
  const core::Range whole{view.offset, view.offset + view.count};
  for (const core::Range part : read ? read(whole) : std::vector<core::Range>{whole}) {
    TROUPE_TRY(found.file->read_f32(*found.tensor, part.begin - view.offset, part.size(),
                                    data + part.begin));
    TROUPE_TRY(check_finite(found, view, part, data));
  }
  return {};
}

// A tied model's file may also store the head, which must then equal the embedding.
Result<void> check_tied_head(const WeightFiles& weights) {
  const WeightFiles::Place* head = weights.find(kHead);
  const WeightFiles::Place* embedding = weights.find(kEmbedding);
  if (head == nullptr || embedding == nullptr) return {};
  const auto a = head->file->bytes(*head->tensor);
  const auto b = embedding->file->bytes(*embedding->tensor);
  if (a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0) return {};
  return bad_file(head->file->path(),
                  "lm_head.weight differs from model.embed_tokens.weight, yet config.json says "
                  "tie_word_embeddings = true",
                  "set it to false to use both");
}

// By name of a tensor of the layout, what the folder stores in its place: another tensor, or
// nullopt if a fused tensor under another entry includes it.
using Replacements = std::map<std::string, std::optional<ParamView>, std::less<>>;

// Replaces the experts' tensors of a layer by the two fused tensors.
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

// The tensors to read from a folder; `stored(name)` tells whether it has a tensor of that name.
// They are those of `layout` (a whole model's), unless the folder stores all experts of a layer as
// two fused tensors, as transformers 5 keeps them in memory.
std::vector<ParamView> stored_views(const ModelSpec& spec,
                                    const ParamLayout& layout,
                                    const std::function<bool(const std::string&)>& stored) {
  Replacements replaced;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    if (!spec.moe.sparse(layer) || !stored(fused_names(layer).gate_up)) continue;
    const MoeOffsets& at = layout.layers[static_cast<std::size_t>(layer)].moe;
    fuse_layer(spec, at, layer, replaced);
    // With fused experts, Mixtral's router has the name that Qwen's has.
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

// Initialises the head of a new reward model or critic: normal with mean 0 and standard deviation 1
// / (hidden + 1) (Stiennon et al. 2020, and OpenRLHF). Scores start near 0 at any width.
void fill_fresh_score(std::span<float> head, std::uint64_t seed) {
  constexpr std::uint64_t kStream = 0x73636f7265;  // "score"
  core::Rng rng(seed, kStream);
  const double deviation = 1.0 / (static_cast<double>(head.size()) + 1.0);
  for (float& value : head)
    value = static_cast<float>(deviation * rng.next_normal());
}

}  // namespace

Result<std::vector<fs::path>> weight_files(const fs::path& folder) {
  TROUPE_TRY_ASSIGN(weights, WeightFiles::open(folder));
  return weights.paths();
}

Result<std::unique_ptr<ParamStore>> load_model(const fs::path& folder,
                                               HeadKind head,
                                               std::uint64_t seed) {
  return load_elements(folder, head, seed, nullptr);
}

Result<std::unique_ptr<ParamStore>> load_elements(const fs::path& folder,
                                                  HeadKind head,
                                                  std::uint64_t seed,
                                                  const ElementsToRead& read) {
  TROUPE_TRY_ASSIGN(spec, read_spec(folder));
  if (head == HeadKind::kLanguage && spec.head == HeadKind::kScore) {
    return bad_file(folder,
                    "holds a " + spec.architecture + ", which scores text and cannot write any",
                    "a language model is needed here");
  }
  TROUPE_TRY_ASSIGN(weights, WeightFiles::open(folder));
  if (spec.tied) {
    TROUPE_TRY(check_tied_head(weights));
    weights.leave_out(kHead);
  }
  const bool fresh_score = head == HeadKind::kScore && spec.head == HeadKind::kLanguage;
  if (fresh_score) {
    weights.leave_out(kHead);
    spec = with_score_head(spec);
  }
  // Check all names before allocating the buffer.
  const ParamLayout layout(spec);
  const std::vector<ParamView> views = stored_views(
      spec, layout, [&](const std::string& name) { return weights.find(name) != nullptr; });
  std::set<std::string_view> expected;
  for (const ParamView& view : views) {
    if (fresh_score && view.name == kScoreWeight) continue;
    expected.insert(view.name);
    if (weights.find(view.name) == nullptr) {
      return bad_file(weights.listing(), "tensor " + view.name + " is missing");
    }
  }
  for (const auto& [name, found] : weights.tensors()) {
    if (!expected.contains(name)) {
      return bad_file(found.file->path(), "tensor " + name + " does not belong to a " +
                                              spec.architecture + " of this config.json");
    }
  }
  auto params = std::make_unique<ParamStore>(spec);
  if (read) {
    core::use_small_pages(params->data(), static_cast<std::size_t>(params->size()) * sizeof(float));
  }
  if (fresh_score) fill_fresh_score(params->view(kScoreWeight), seed);
  for (const ParamView& view : views) {
    if (fresh_score && view.name == kScoreWeight) continue;
    TROUPE_TRY(read_tensor(*weights.find(view.name), view, read, params->data()));
  }
  return params;
}

}  // namespace troupe::model
