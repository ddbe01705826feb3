#include "runtime/model/pack_plan.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace troupe::model {
namespace {

// Elements per unit: small enough to pack in a fraction of a millisecond, large enough to be worth
// scheduling.
constexpr std::int64_t kUnit_elements = 32 << 10;

// Where the layout is computed without memory. Only offsets from here are used.
constexpr std::uintptr_t kNowhere = 64;

std::int64_t offset_from_nowhere(const void* place) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(place) - kNowhere);
}

}  // namespace

PackPlan::PackPlan(const ModelSpec& spec,
                   kernels::PanelDtype dtype,
                   core::Memory& memory,
                   PanelRoom room)
    : dtype_(dtype), memory_(&memory) {
  const PackedLayout packed = lay_out_packed(spec, dtype, kNowhere, room);
  image_bytes_ = packed.image * static_cast<std::int64_t>(sizeof(float));
  plan(spec, packed);
  by_place_.resize(pieces_.size());
  std::iota(by_place_.begin(), by_place_.end(), std::size_t{0});
  std::sort(by_place_.begin(), by_place_.end(),
            [&](std::size_t a, std::size_t b) { return pieces_[a].out < pieces_[b].out; });
  if (!spec.norm_plus_one) return;
  const std::vector<float> ones(static_cast<std::size_t>(std::max(spec.hidden, spec.head_dim)),
                                1.0f);
  ones_ = core::Buffer<float>(std::ssize(ones), memory);
  ones_.upload(ones);
}

void PackPlan::add_panels(const kernels::Panels& out,
                          std::int64_t flat,
                          std::int64_t n,
                          std::int64_t k) {
  Piece piece;
  piece.out = offset_from_nowhere(out.data);
  piece.scale = out.scale == nullptr ? 0 : offset_from_nowhere(out.scale);
  piece.dtype = out.dtype;
  piece.flat = flat;
  piece.n = n;
  piece.k = k;
  const std::int64_t panels = std::max<std::int64_t>(kUnit_elements / (k * kernels::kPanel), 1);
  piece.unit_rows = panels * kernels::kPanel;
  piece.first_unit = units_;
  piece.panels = true;
  units_ += (n + piece.unit_rows - 1) / piece.unit_rows;
  pieces_.push_back(piece);
}

void PackPlan::add_copy(const float* out, std::int64_t flat, std::int64_t count, bool plus_one) {
  if (out == nullptr) return;
  Piece piece;
  piece.out = offset_from_nowhere(out);
  piece.flat = flat;
  piece.n = count;
  piece.k = 1;
  piece.unit_rows = kUnit_elements;
  piece.first_unit = units_;
  piece.plus_one = plus_one;
  units_ += (count + kUnit_elements - 1) / kUnit_elements;
  pieces_.push_back(piece);
}

void PackPlan::plan(const ModelSpec& spec, const PackedLayout& packed) {
  const ParamLayout layout(spec);
  flat_size_ = layout.total;
  const auto add_norm = [&](const float* out, std::int64_t flat, std::int64_t count) {
    add_copy(out, flat, count, spec.norm_plus_one);
  };
  for (std::size_t i = 0; i < packed.layers.size(); ++i) {
    const LayerOffsets& at = layout.layers[i];
    const PackedLayer& layer = packed.layers[i];
    add_norm(layer.input_norm, at.input_norm, spec.hidden);
    add_panels(layer.qkv, at.q, spec.qkv_width(), spec.hidden);
    add_copy(layer.qkv_bias, at.q_bias, spec.qkv_width());
    add_norm(layer.q_norm, at.q_norm, spec.head_dim);
    add_norm(layer.k_norm, at.k_norm, spec.head_dim);
    add_panels(layer.o, at.o, spec.hidden, spec.q_width());
    add_copy(layer.o_bias, at.o_bias, spec.hidden);
    add_norm(layer.attention_out_norm, at.attention_out_norm, spec.hidden);
    add_norm(layer.ffn_norm, at.ffn_norm, spec.hidden);
    if (spec.moe.sparse(static_cast<std::int64_t>(i))) {
      plan_experts(spec.moe, spec.hidden, layer.moe, at.moe);
      continue;
    }
    add_panels(layer.gate_up, at.gate, 2 * spec.ffn, spec.hidden);
    add_copy(layer.gate_up_bias, at.gate_bias, 2 * spec.ffn);
    add_panels(layer.down, at.down, spec.hidden, spec.ffn);
    add_copy(layer.down_bias, at.down_bias, spec.hidden);
    add_norm(layer.ffn_out_norm, at.ffn_out_norm, spec.hidden);
  }
  add_panels(packed.head, layout.head, spec.head_rows(), spec.hidden);
  if (packed.embedding != nullptr) {
    add_copy(packed.embedding, layout.embedding, spec.vocab * spec.hidden);
  }
  add_norm(packed.final_norm, layout.final_norm, spec.hidden);
}

void PackPlan::plan_experts(const MoeSpec& moe,
                            std::int64_t hidden,
                            const PackedMoe& packed,
                            const MoeOffsets& at) {
  const auto add = [&](const PackedExpert& expert, const ExpertOffsets& from, std::int64_t ffn) {
    add_panels(expert.gate_up, from.gate, 2 * ffn, hidden);
    add_panels(expert.down, from.down, hidden, ffn);
  };
  add_panels(packed.router, at.router, moe.router_rows(), hidden);
  for (std::size_t e = 0; e < packed.experts.size(); ++e)
    add(packed.experts[e], at.experts[e], moe.ffn);
  if (moe.has_shared()) add(packed.shared, at.shared, moe.shared_ffn);
}

const PackPlan::Piece& PackPlan::piece_of(std::int64_t unit) const {
  const auto after = std::upper_bound(
      pieces_.begin(), pieces_.end(), unit,
      [](std::int64_t wanted, const Piece& piece) { return wanted < piece.first_unit; });
  return *std::prev(after);
}

std::int64_t PackPlan::row_of(const Piece& piece, std::int64_t unit) const {
  return std::min((unit - piece.first_unit) * piece.unit_rows, piece.n);
}

std::int64_t PackPlan::offset_of(const Piece& piece, std::int64_t row) const {
  if (!piece.panels) return piece.out + row * static_cast<std::int64_t>(sizeof(float));
  return piece.out + kernels::panels_of(row) * kernels::panel_bytes(piece.dtype, piece.k);
}

PackPlan::Place PackPlan::place_of(std::int64_t unit) const {
  const Piece& piece = piece_of(unit);
  return {offset_of(piece, row_of(piece, unit)), offset_of(piece, row_of(piece, unit + 1))};
}

PackPlan::Place PackPlan::scales_of(std::int64_t unit) const {
  const Piece& piece = piece_of(unit);
  if (piece.scale == 0) return {};
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(float));
  const std::int64_t begin = row_of(piece, unit), end = row_of(piece, unit + 1);
  return {piece.scale + begin * kBytes,
          piece.scale + (begin + kernels::panels_of(end - begin) * kernels::kPanel) * kBytes};
}

float* PackPlan::scales_at(const Piece& piece, std::int64_t row, char* image) {
  return piece.scale == 0 ? nullptr : reinterpret_cast<float*>(image + piece.scale) + row;
}

std::vector<std::int64_t> PackPlan::units_in(std::int64_t begin, std::int64_t end) const {
  // The last piece that starts at `begin` or before it.
  auto next = std::upper_bound(
      by_place_.begin(), by_place_.end(), begin,
      [&](std::int64_t place, std::size_t piece) { return place < pieces_[piece].out; });
  if (next != by_place_.begin()) --next;
  std::vector<std::int64_t> found;
  for (; next != by_place_.end() && pieces_[*next].out < end; ++next) {
    const Piece& piece = pieces_[*next];
    const std::int64_t size = offset_of(piece, piece.unit_rows) - piece.out;
    const std::int64_t count = (piece.n + piece.unit_rows - 1) / piece.unit_rows;
    std::int64_t unit = std::max<std::int64_t>((begin - piece.out) / size, 0);
    for (; unit < count && piece.out + unit * size < end; ++unit)
      if (place_of(piece.first_unit + unit).end > begin) found.push_back(piece.first_unit + unit);
  }
  return found;
}

std::vector<PackPlan::Stretch> PackPlan::stretches_in(core::Range flat) const {
  std::vector<Stretch> found;
  for (const Piece& piece : pieces_) {
    if (piece.flat < flat.begin || piece.flat >= flat.end) continue;
    const std::int64_t units = (piece.n + piece.unit_rows - 1) / piece.unit_rows;
    found.push_back({piece.first_unit, units});
  }
  return found;
}

void PackPlan::fill_rows(const Piece& piece,
                         std::int64_t begin,
                         std::int64_t end,
                         const float* from,
                         char* out,
                         float* scales) {
  const std::int64_t count = end - begin;
  auto* const numbers = reinterpret_cast<float*>(out);
  if (piece.panels) {
    kernels::ops().pack_transposed(
        {.from = from, .ldf = piece.k, .n = count, .k = piece.k, .to = {out, piece.dtype, scales}},
        {0, kernels::panels_of(count)});
  } else if (piece.plus_one) {
    kernels::ops().add_rows({.columns = count, .a = ones_.data(), .b = from, .out = numbers},
                            {0, 1});
  } else {
    memory_->copy(out, from, static_cast<std::size_t>(count) * sizeof(float));
  }
}

void PackPlan::fill_unit(
    std::int64_t unit, const float* flat, char* image, bool here, std::int64_t first) {
  const Piece& piece = piece_of(unit);
  const std::int64_t begin = row_of(piece, unit), end = row_of(piece, unit + 1);
  const float* const from = flat + (piece.flat - first) + begin * piece.k;
  char* const out = image + offset_of(piece, begin);
  float* const scales = scales_at(piece, begin, image);
  if (here || memory_->on_host()) return fill_rows(piece, begin, end, from, out, scales);
  const std::int64_t count = (end - begin) * piece.k;
  staging_.reserve_discard(count, *memory_);
  staging_.upload({from, static_cast<std::size_t>(count)});
  fill_rows(piece, begin, end, staging_.data(), out, scales);
}

void PackPlan::fill_unit_at(std::int64_t unit, const float* flat, char* out, char* scales) {
  const Piece& piece = piece_of(unit);
  TROUPE_CHECK(memory_->on_host() && (piece.scale == 0 || scales != nullptr),
               "a unit on the host, with a place for its scales");
  const std::int64_t begin = row_of(piece, unit), end = row_of(piece, unit + 1);
  fill_rows(piece, begin, end, flat + piece.flat + begin * piece.k, out,
            piece.scale == 0 ? nullptr : reinterpret_cast<float*>(scales));
}

void PackPlan::fill(const float* flat, char* image) {
  fill_part({0, flat_size_}, flat, image);
}

void PackPlan::fill_part(core::Range part, const float* numbers, char* image) {
  for (const Piece& piece : pieces_) {
    if (piece.flat < part.begin || piece.flat >= part.end) continue;
    fill_rows(piece, 0, piece.n, numbers + (piece.flat - part.begin), image + piece.out,
              scales_at(piece, 0, image));
  }
}

}  // namespace troupe::model
