#include "runtime/model/packed_layout.hpp"

#include <algorithm>

namespace troupe::model {
namespace {

// Hands out pieces of one block in multiples of 16 floats.
class Carver {
 public:
  Carver(std::uintptr_t start, PanelRoom room) : start_(start), room_(room) {}
  // What follows is another part of the model.
  void start_part() {
    if (room_ == PanelRoom::kPart) at_ = 0;
  }
  // What follows is there whatever the part.
  void end_parts() { at_ = used_; }
  const float* take(std::int64_t count) {
    const auto offset = static_cast<std::uintptr_t>(at_) * sizeof(float);
    at_ += (count + 15) / 16 * 16;
    used_ = std::max(used_, at_);
    return reinterpret_cast<const float*>(start_ + offset);
  }
  kernels::Panels take_panels(kernels::PanelDtype dtype, std::int64_t n, std::int64_t k) {
    const bool scaled = dtype == kernels::PanelDtype::kInt8;
    const float* data = take(kernels::packed_bytes(dtype, n, k) / 4);
    return {data, dtype, scaled ? take(kernels::panels_of(n) * kernels::kPanel) : nullptr};
  }
  std::int64_t used() const { return used_; }

 private:
  const std::uintptr_t start_;
  const PanelRoom room_;
  std::int64_t at_ = 0, used_ = 0;
};

PackedExpert carve_expert(Carver& carver,
                          kernels::PanelDtype dtype,
                          std::int64_t hidden,
                          std::int64_t ffn) {
  PackedExpert expert;
  expert.gate_up = carver.take_panels(dtype, 2 * ffn, hidden);
  expert.down = carver.take_panels(dtype, hidden, ffn);
  return expert;
}

PackedMoe carve_experts(Carver& carver,
                        kernels::PanelDtype dtype,
                        const MoeSpec& moe,
                        std::int64_t hidden) {
  PackedMoe packed;
  packed.router = carver.take(kernels::packed_size(moe.router_rows(), hidden));
  for (std::int64_t e = 0; e < moe.experts; ++e)
    packed.experts.push_back(carve_expert(carver, dtype, hidden, moe.ffn));
  if (moe.has_shared()) packed.shared = carve_expert(carver, dtype, hidden, moe.shared_ffn);
  return packed;
}

PackedLayer carve_layer(Carver& carver,
                        const ModelSpec& spec,
                        kernels::PanelDtype dtype,
                        bool sparse) {
  PackedLayer layer;
  layer.input_norm = carver.take(spec.hidden);
  layer.qkv = carver.take_panels(dtype, spec.qkv_width(), spec.hidden);
  layer.o = carver.take_panels(dtype, spec.hidden, spec.q_width());
  layer.ffn_norm = carver.take(spec.hidden);
  if (sparse) {
    layer.moe = carve_experts(carver, dtype, spec.moe, spec.hidden);
  } else {
    layer.gate_up = carver.take_panels(dtype, 2 * spec.ffn, spec.hidden);
    layer.down = carver.take_panels(dtype, spec.hidden, spec.ffn);
  }
  if (spec.qkv_bias) layer.qkv_bias = carver.take(spec.qkv_width());
  if (spec.qk_norm) layer.q_norm = carver.take(spec.head_dim);
  if (spec.qk_norm) layer.k_norm = carver.take(spec.head_dim);
  if (spec.o_bias) layer.o_bias = carver.take(spec.hidden);
  if (spec.mlp_bias) layer.gate_up_bias = carver.take(2 * spec.ffn);
  if (spec.mlp_bias) layer.down_bias = carver.take(spec.hidden);
  if (spec.post_norms) layer.attention_out_norm = carver.take(spec.hidden);
  if (spec.post_norms) layer.ffn_out_norm = carver.take(spec.hidden);
  return layer;
}

RopeTables carve_tables(Carver& carver, const ModelSpec& spec) {
  const std::int64_t count = spec.context * spec.rotary() / 2;
  RopeTables tables;
  tables.cos = carver.take(count);
  tables.sin = carver.take(count);
  return tables;
}

}  // namespace

PackedLayout lay_out_packed(const ModelSpec& spec,
                            kernels::PanelDtype dtype,
                            std::uintptr_t start,
                            PanelRoom room) {
  Carver carver(start, room);
  PackedLayout out;
  for (std::int64_t i = 0; i < spec.layers; ++i) {
    carver.start_part();
    out.layers.push_back(carve_layer(carver, spec, dtype, spec.moe.sparse(i)));
  }
  carver.start_part();
  out.final_norm = carver.take(spec.hidden);
  out.head = carver.take_panels(dtype, spec.head_rows(), spec.hidden);
  carver.start_part();
  out.embedding = spec.tied ? nullptr : carver.take(spec.vocab * spec.hidden);
  carver.end_parts();
  out.image = carver.used();
  out.full = carve_tables(carver, spec);
  out.sliding = spec.sliding_rope ? carve_tables(carver, spec) : out.full;
  out.total = carver.used();
  for (std::int64_t i = 0; i < spec.layers; ++i) {
    PackedLayer& layer = out.layers[static_cast<std::size_t>(i)];
    const RopeTables& tables = spec.slides(i) ? out.sliding : out.full;
    layer.rope_cos = tables.cos;
    layer.rope_sin = tables.sin;
  }
  return out;
}

}  // namespace troupe::model
