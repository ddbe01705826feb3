#include "runtime/model/lora_grad.hpp"

#include "kernels/ops.hpp"

#include <algorithm>

namespace troupe::model {
namespace {

using core::Team;
using kernels::ops;

// One map that has an adapter, and the offsets of its data.
struct Place {
  Linear linear;
  LinearShape shape;
  AdapterOffsets at;
  std::int64_t column = 0;  // first column of its output in dy
  std::int64_t low = 0;     // floats before its [rows, rank] in low_x and low_dy
  std::int64_t packed = 0;  // floats before it in `packed`
};

template <class F>
void each_adapter(const AdapterGrads& call, F&& f) {
  const ParamLayout& layout = call.grads.layout();
  const auto layer = static_cast<std::size_t>(call.layer);
  Place place{};
  for (const Linear linear : call.maps) {
    place.linear = linear;
    place.shape = shape_of(call.grads.spec(), linear);
    place.at = layout.adapters[layer][index_of(linear)];
    if (place.at.rank > 0) {
      f(place);
      place.low += call.x.rows * place.at.rank;
      place.packed += kernels::packed_size(place.at.rank, call.x.rows);
    }
    place.column += place.shape.rows;
  }
}

// out [rows of `in`, rank] = scale * in * panels, for this member's rows.
void thin_product(
    Team team, Matrix in, const float* panels, std::int64_t rank, float scale, float* out) {
  const auto [first, last] = team.share(in.rows);
  if (first >= last) return;
  const kernels::Gemm gemm{.m = in.rows,
                           .n = rank,
                           .k = in.columns,
                           .a = in.data,
                           .lda = in.ld,
                           .b = panels,
                           .c = out,
                           .ldc = rank};
  ops().gemm(gemm, {first, last}, {0, kernels::panels_of(rank)});
  ops().scale(out, scale, out, {first * rank, last * rank});
}

}  // namespace

void AdapterScratch::reserve(core::Memory& memory,
                             const Lora* lora,
                             std::int64_t layers,
                             std::int64_t rows) {
  if (lora == nullptr) return;
  std::int64_t low = 0, panels = 0;
  const auto see = [&](std::int64_t layer, std::initializer_list<Linear> maps) {
    std::int64_t ranks = 0, room = 0;
    for (const Linear linear : maps) {
      const std::int64_t rank = lora->rank(layer, linear);
      ranks += rank;
      room += kernels::packed_size(rank, rows);
    }
    low = std::max(low, ranks * rows);
    panels = std::max(panels, room);
  };
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    see(layer, {Linear::kQ, Linear::kK, Linear::kV});
    see(layer, {Linear::kO});
    see(layer, {Linear::kGate, Linear::kUp});
    see(layer, {Linear::kDown});
  }
  low_x.reserve_discard(low, memory);
  low_dy.reserve_discard(low, memory);
  packed.reserve_discard(panels, memory);
}

bool has_adapter(const Lora* lora, std::int64_t layer, std::span<const Linear> maps) {
  return lora != nullptr && std::any_of(maps.begin(), maps.end(), [&](Linear linear) {
           return lora->rank(layer, linear) > 0;
         });
}

void adapter_grads(Team team, const AdapterGrads& call, AdapterScratch& scratch) {
  const auto scale = static_cast<float>(call.lora.scale());
  const auto dy_of = [&](const Place& place) {
    return Matrix{call.dy.data + place.column, call.dy.rows, place.shape.rows, call.dy.ld};
  };
  each_adapter(call, [&](const Place& place) {
    thin_product(team, call.x, call.lora.down_panels(call.layer, place.linear), place.at.rank,
                 scale, scratch.low_x.data() + place.low);
    thin_product(team, dy_of(place), call.lora.back_panels(call.layer, place.linear), place.at.rank,
                 scale, scratch.low_dy.data() + place.low);
  });
  team.barrier();
  each_adapter(call, [&](const Place& place) {
    const std::int64_t rank = place.at.rank;
    pack_input(team, {scratch.low_x.data() + place.low, call.x.rows, rank, rank},
               scratch.packed.data() + place.packed);
  });
  team.barrier();
  each_adapter(call, [&](const Place& place) {
    const std::int64_t rank = place.at.rank;
    weight_grad(team, dy_of(place), scratch.packed.data() + place.packed, rank,
                call.grads.data() + place.at.b);
    weight_grad(team, {scratch.low_dy.data() + place.low, call.x.rows, rank, rank}, call.packed_x,
                place.shape.columns, call.grads.data() + place.at.a);
  });
  team.barrier();  // the next maps reuse the scratch
}

}  // namespace troupe::model
