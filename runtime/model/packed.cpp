#include "runtime/model/packed.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/pages.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::model {
namespace {

// Hands out pieces of one buffer in multiples of 16 floats; with a null base it only counts.
class Carver {
 public:
  explicit Carver(float* base) : base_(base) {}
  float* take(std::int64_t count) {
    float* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (count + 15) / 16 * 16;
    return piece;
  }
  kernels::Panels take_panels(kernels::PanelDtype dtype, std::int64_t n, std::int64_t k) {
    const bool scaled = dtype == kernels::PanelDtype::kInt8;
    const float* data = take(kernels::packed_bytes(dtype, n, k) / 4);
    return {data, dtype, scaled ? take(kernels::panels_of(n) * kernels::kPanel) : nullptr};
  }
  std::int64_t used() const { return used_; }

 private:
  float* base_;
  std::int64_t used_ = 0;
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

// Rotary tables. Either all layers share one pair, or full and sliding layers have one each.
struct RopeTables {
  const float *cos = nullptr, *sin = nullptr;
};

RopeTables carve_tables(Carver& carver, const ModelSpec& spec) {
  const std::int64_t count = spec.context * spec.rotary() / 2;
  RopeTables tables;
  tables.cos = carver.take(count);
  tables.sin = carver.take(count);
  return tables;
}

// The panels lie in this object's buffer; only the fill functions write them.
float* writable(const float* piece) {
  return const_cast<float*>(piece);
}

// Elements per unit: small enough to pack in a fraction of a millisecond, large enough to be worth
// scheduling.
constexpr std::int64_t kUnit_elements = 32 << 10;

}  // namespace

PackedWeights::PackedWeights(const ModelSpec& spec, kernels::PanelDtype dtype, core::Memory& memory)
    : spec_(spec), dtype_(dtype) {
  TROUPE_CHECK(memory.on_host() || !spec.moe.any(), "experts are computed on the processor only");
  RopeTables full, sliding;
  const auto carve = [&](Carver carver) {
    layers_.clear();
    for (std::int64_t i = 0; i < spec.layers; ++i)
      layers_.push_back(carve_layer(carver, spec, dtype, spec.moe.sparse(i)));
    final_norm_ = carver.take(spec.hidden);
    head_ = carver.take_panels(dtype, spec.head_rows(), spec.hidden);
    embedding_ = spec.tied ? nullptr : carver.take(spec.vocab * spec.hidden);
    full = carve_tables(carver, spec);
    sliding = spec.sliding_rope ? carve_tables(carver, spec) : full;
    return carver.used();
  };
  data_ = core::Buffer<float>(carve(Carver(nullptr)), memory);
  carve(Carver(data_.data()));
  fill_tables(spec.rope, full.cos, full.sin);
  if (spec.sliding_rope) fill_tables(*spec.sliding_rope, sliding.cos, sliding.sin);
  for (std::int64_t i = 0; i < spec.layers; ++i) {
    const RopeTables& tables = spec.slides(i) ? sliding : full;
    layers_[static_cast<std::size_t>(i)].rope_cos = tables.cos;
    layers_[static_cast<std::size_t>(i)].rope_sin = tables.sin;
  }
  plan_fill();
  if (spec.norm_plus_one) {
    const std::vector<float> ones(static_cast<std::size_t>(std::max(spec.hidden, spec.head_dim)),
                                  1.0f);
    ones_ = core::Buffer<float>(std::ssize(ones), memory);
    ones_.upload(ones);
  }
}

void PackedWeights::fill_tables(const RopeSpec& rope, const float* cos, const float* sin) {
  const std::int64_t count = spec_.context * spec_.rotary() / 2;
  const auto make = [&](float* to_cos, float* to_sin) {
    rope_tables(rope, spec_.rotary(), spec_.context, to_cos, to_sin);
  };
  core::Memory& memory = data_.memory();
  if (memory.on_host()) return make(writable(cos), writable(sin));
  const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
  core::Buffer<float> host_cos(count), host_sin(count);
  make(host_cos.data(), host_sin.data());
  memory.upload(writable(cos), host_cos.data(), bytes);
  memory.upload(writable(sin), host_sin.data(), bytes);
}

void PackedWeights::embed(const std::int32_t* tokens,
                          std::int64_t begin,
                          std::int64_t end,
                          float* x) const {
  const kernels::EmbedRows rows{.hidden = spec_.hidden,
                                .panels = head_,
                                .table = embedding_,
                                .scale = spec_.embed_scale,
                                .tokens = tokens,
                                .x = x};
  kernels::ops().embed_rows(rows, {begin, end});
}

void PackedWeights::add_panels(const kernels::Panels& out,
                               std::int64_t flat,
                               std::int64_t n,
                               std::int64_t k) {
  const kernels::PanelRoom room{const_cast<void*>(out.data), out.dtype,
                                const_cast<float*>(out.scale)};
  Piece piece{room, flat, n, k, 0, units_, true};
  const std::int64_t panels = std::max<std::int64_t>(kUnit_elements / (k * kernels::kPanel), 1);
  piece.unit_rows = panels * kernels::kPanel;
  units_ += (n + piece.unit_rows - 1) / piece.unit_rows;
  pieces_.push_back(piece);
}

void PackedWeights::add_copy(const float* out,
                             std::int64_t flat,
                             std::int64_t count,
                             bool plus_one) {
  if (out == nullptr) return;
  pieces_.push_back({writable(out), flat, count, 1, kUnit_elements, units_, false, plus_one});
  units_ += (count + kUnit_elements - 1) / kUnit_elements;
}

void PackedWeights::plan_fill() {
  const ParamLayout layout(spec_);
  flat_size_ = layout.total;
  const auto add_norm = [&](const float* out, std::int64_t flat, std::int64_t count) {
    add_copy(out, flat, count, spec_.norm_plus_one);
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const LayerOffsets& at = layout.layers[i];
    const PackedLayer& layer = layers_[i];
    add_norm(layer.input_norm, at.input_norm, spec_.hidden);
    add_panels(layer.qkv, at.q, spec_.qkv_width(), spec_.hidden);
    add_copy(layer.qkv_bias, at.q_bias, spec_.qkv_width());
    add_norm(layer.q_norm, at.q_norm, spec_.head_dim);
    add_norm(layer.k_norm, at.k_norm, spec_.head_dim);
    add_panels(layer.o, at.o, spec_.hidden, spec_.q_width());
    add_copy(layer.o_bias, at.o_bias, spec_.hidden);
    add_norm(layer.attention_out_norm, at.attention_out_norm, spec_.hidden);
    add_norm(layer.ffn_norm, at.ffn_norm, spec_.hidden);
    if (spec_.moe.sparse(static_cast<std::int64_t>(i))) {
      plan_experts(layer.moe, at.moe);
      continue;
    }
    add_panels(layer.gate_up, at.gate, 2 * spec_.ffn, spec_.hidden);
    add_copy(layer.gate_up_bias, at.gate_bias, 2 * spec_.ffn);
    add_panels(layer.down, at.down, spec_.hidden, spec_.ffn);
    add_copy(layer.down_bias, at.down_bias, spec_.hidden);
    add_norm(layer.ffn_out_norm, at.ffn_out_norm, spec_.hidden);
  }
  add_panels(head_, layout.head, spec_.head_rows(), spec_.hidden);
  if (embedding_ != nullptr) add_copy(embedding_, layout.embedding, spec_.vocab * spec_.hidden);
  add_norm(final_norm_, layout.final_norm, spec_.hidden);
}

void PackedWeights::plan_experts(const PackedMoe& packed, const MoeOffsets& at) {
  const MoeSpec& moe = spec_.moe;
  const auto add = [&](const PackedExpert& expert, const ExpertOffsets& from, std::int64_t ffn) {
    add_panels(expert.gate_up, from.gate, 2 * ffn, spec_.hidden);
    add_panels(expert.down, from.down, spec_.hidden, ffn);
  };
  add_panels(packed.router, at.router, moe.router_rows(), spec_.hidden);
  for (std::size_t e = 0; e < packed.experts.size(); ++e)
    add(packed.experts[e], at.experts[e], moe.ffn);
  if (moe.has_shared()) add(packed.shared, at.shared, moe.shared_ffn);
}

const PackedWeights::Piece& PackedWeights::piece_of(std::int64_t unit) const {
  const auto after = std::upper_bound(
      pieces_.begin(), pieces_.end(), unit,
      [](std::int64_t wanted, const Piece& piece) { return wanted < piece.first_unit; });
  return *std::prev(after);
}

void PackedWeights::fill_rows(const Piece& piece,
                              std::int64_t begin,
                              std::int64_t end,
                              const float* from) {
  const std::int64_t count = end - begin;
  if (piece.panels) {
    kernels::PanelRoom to = piece.out;
    to.data = static_cast<char*>(to.data) +
              begin / kernels::kPanel * kernels::panel_bytes(to.dtype, piece.k);
    if (to.scale != nullptr) to.scale += begin;
    kernels::ops().pack_transposed(
        {.from = from, .ldf = piece.k, .n = count, .k = piece.k, .to = to},
        {0, kernels::panels_of(count)});
  } else if (piece.plus_one) {
    kernels::ops().add_rows(
        {.columns = count, .a = ones_.data(), .b = from, .out = piece.out.f32() + begin}, {0, 1});
  } else {
    data_.memory().copy(piece.out.f32() + begin, from,
                        static_cast<std::size_t>(count) * sizeof(float));
  }
}

void PackedWeights::fill_unit(std::int64_t unit, const float* flat, bool here) {
  const Piece& piece = piece_of(unit);
  const std::int64_t begin = (unit - piece.first_unit) * piece.unit_rows;
  const std::int64_t end = std::min(begin + piece.unit_rows, piece.n);
  const float* from = flat + piece.flat + begin * piece.k;
  if (here || data_.memory().on_host()) return fill_rows(piece, begin, end, from);
  const std::int64_t count = (end - begin) * piece.k;
  staging_.reserve_discard(count, data_.memory());
  staging_.upload({from, static_cast<std::size_t>(count)});
  fill_rows(piece, begin, end, staging_.data());
}

void PackedWeights::fill(core::Team team, const ParamStore& params, core::Version version) {
  TROUPE_CHECK(params.size() == flat_size_, "parameters of another model");
  TROUPE_CHECK(params.memory().on_host() || &params.memory() == &data_.memory(),
               "parameters on another device than their panels");
  if (params.memory().on_host()) {
    const auto [begin, end] = team.share(units_);
    for (std::int64_t unit = begin; unit < end; ++unit)
      fill_unit(unit, params.data());
  } else {
    for (const Piece& piece : pieces_)
      fill_rows(piece, 0, piece.n, params.data() + piece.flat);
  }
  if (team.rank == 0) version_ = version;
  team.barrier();
}

void PackedWeights::fill_range(core::Team team, const float* flat, core::Range part) {
  for (const Piece& piece : pieces_) {
    if (piece.flat < part.begin || piece.flat >= part.end) continue;
    const auto [begin, end] = team.share(piece.units());
    for (std::int64_t unit = begin; unit < end; ++unit)
      fill_unit(piece.first_unit + unit, flat, true);
  }
}

void PackedWeights::use_small_pages() noexcept {
  core::use_small_pages(data_.data(), static_cast<std::size_t>(bytes()));
}

void PackedWeights::forget_range(core::Range part) noexcept {
  for (const Piece& piece : pieces_) {
    if (piece.flat < part.begin || piece.flat >= part.end) continue;
    const std::int64_t bytes = piece.panels
                                   ? kernels::packed_bytes(piece.out.dtype, piece.n, piece.k)
                                   : piece.n * static_cast<std::int64_t>(sizeof(float));
    core::forget_pages(piece.out.data, static_cast<std::size_t>(bytes));
  }
}

void PackedWeights::touch() {
  if (!data_.memory().on_host()) return;
  constexpr std::int64_t kPage = 4096 / sizeof(float);
  for (std::int64_t i = 0; i < data_.size(); i += kPage) {
    volatile float* const cell = data_.data() + i;
    *cell = *cell;
  }
}

std::uint64_t PackedWeights::bytes() const {
  return static_cast<std::uint64_t>(data_.size()) * sizeof(float);
}

}  // namespace troupe::model
