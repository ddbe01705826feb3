#include "runtime/plan/model_sizes.hpp"

#include "runtime/model/params.hpp"

#include <algorithm>
#include <utility>

namespace troupe::plan {
namespace {

using kernels::PanelDtype;
using model::ModelSpec;

constexpr std::int64_t kFloat_bytes = 4;

// Pieces of packed weights begin at multiples of 16 floats.
std::int64_t floats(std::int64_t count) {
  return (count + 15) / 16 * 16 * kFloat_bytes;
}

std::int64_t matrix(PanelDtype dtype, std::int64_t n, std::int64_t k) {
  const bool scaled = dtype == PanelDtype::kInt8;
  return floats(kernels::packed_bytes(dtype, n, k) / kFloat_bytes) +
         (scaled ? floats(kernels::panels_of(n) * kernels::kPanel) : 0);
}

std::int64_t network(PanelDtype dtype, std::int64_t hidden, std::int64_t ffn) {
  return matrix(dtype, 2 * ffn, hidden) + matrix(dtype, hidden, ffn);
}

std::int64_t experts(PanelDtype dtype, const ModelSpec& spec) {
  const model::MoeSpec& moe = spec.moe;
  return floats(kernels::packed_size(moe.router_rows(), spec.hidden)) +
         moe.experts * network(dtype, spec.hidden, moe.ffn) +
         (moe.has_shared() ? network(dtype, spec.hidden, moe.shared_ffn) : 0);
}

// Norms and biases, which stay f32.
std::int64_t vectors(const ModelSpec& spec) {
  const std::int64_t norms = spec.post_norms ? 4 : 2;
  return norms * floats(spec.hidden) + (spec.qk_norm ? 2 * floats(spec.head_dim) : 0) +
         (spec.qkv_bias ? floats(spec.qkv_width()) : 0) + (spec.o_bias ? floats(spec.hidden) : 0) +
         (spec.mlp_bias ? floats(2 * spec.ffn) + floats(spec.hidden) : 0);
}

std::int64_t layer_panels(PanelDtype dtype, const ModelSpec& spec, bool sparse) {
  return vectors(spec) + matrix(dtype, spec.qkv_width(), spec.hidden) +
         matrix(dtype, spec.hidden, spec.q_width()) +
         (sparse ? experts(dtype, spec) : network(dtype, spec.hidden, spec.ffn));
}

// Elements of the largest layer; the names of its tensors hold its number.
std::int64_t largest_layer(const model::ParamLayout& layout, std::int64_t layers) {
  std::vector<std::int64_t> sums(static_cast<std::size_t>(layers), 0);
  for (const model::ParamView& view : layout.views) {
    const std::string mark = "layers.";
    const auto at = view.name.find(mark);
    if (at == view.name.npos) continue;
    sums[std::stoul(view.name.substr(at + mark.size()))] += view.count;
  }
  return *std::max_element(sums.begin(), sums.end());
}

}  // namespace

ModelSizes::ModelSizes(ModelSpec spec) : spec_(std::move(spec)) {
  const model::ParamLayout layout(spec_);
  weights_ = layout.total;
  layer_ = largest_layer(layout, spec_.layers);
}

std::int64_t ModelSizes::largest_part() const {
  return std::max(layer_, embedding());
}

std::int64_t ModelSizes::part_room() const {
  return spec_.tied ? layer_ + embedding() : largest_part();
}

std::int64_t ModelSizes::logits_width() const {
  return kernels::panels_of(spec_.vocab) * kernels::kPanel;
}

std::int64_t ModelSizes::panel_bytes(PanelDtype dtype) const {
  const std::int64_t tables = spec_.sliding_rope ? 4 : 2;
  return image_bytes(dtype) + tables * floats(spec_.context * spec_.rotary() / 2);
}

std::int64_t ModelSizes::image_bytes(PanelDtype dtype) const {
  std::int64_t bytes = floats(spec_.hidden) + matrix(dtype, spec_.head_rows(), spec_.hidden);
  for (std::int64_t layer = 0; layer < spec_.layers; ++layer)
    bytes += layer_panels(dtype, spec_, spec_.moe.sparse(layer));
  if (!spec_.tied) bytes += floats(embedding());
  return bytes;
}

std::int64_t ModelSizes::token_bytes(kernels::KvDtype dtype) const {
  return 2 * spec_.layers * spec_.kv_width() * kernels::bytes_of(dtype);
}

}  // namespace troupe::plan
