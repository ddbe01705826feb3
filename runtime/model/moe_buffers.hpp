// Buffers for the intermediate values of a mixture-of-experts layer. The router chooses k experts
// for each of the `rows` rows, which gives rows * k pairs of a row and an expert. Pairs are sorted
// by expert, so that the rows of one expert form a matrix. Engine and scorers reuse one MoeScratch
// for all layers; the trainer keeps each layer's `scores`, `expert`, `weight` and `gate_up`. All
// matrices are row-major; `ffn` is the width of one expert.
#pragma once

#include "kernels/shapes.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/model/moe_routing.hpp"
#include "runtime/model/spec.hpp"

#include <cstdint>

namespace troupe::model {

struct MoeBuffers {
  Routing routing;            // its `place` is scratch
  float* gathered = nullptr;  // [pairs, hidden] scratch: the normed row of each pair
  float* gate_up = nullptr;   // [pairs, 2 ffn]
  float* act = nullptr;       // [pairs, ffn] scratch
  float* y = nullptr;         // [pairs, hidden] scratch: output of the expert
  float* shared_y = nullptr;  // [rows, hidden] scratch: output of the shared expert
};

// Columns of Routing::scores: router_rows rounded up to a multiple of 16.
inline std::int64_t scores_width(const MoeSpec& moe) {
  return kernels::panels_of(moe.router_rows()) * kernels::kPanel;
}

// Owns the memory of a MoeBuffers.
struct MoeScratch {
  core::Buffer<float> scores, weight, gathered, gate_up, act, y, shared_y;
  core::Buffer<std::int32_t> expert, place;

  // Call it outside parallel regions. Does nothing for a dense model.
  void reserve(const ModelSpec& spec, std::int64_t rows) {
    const MoeSpec& moe = spec.moe;
    const std::int64_t pairs = rows * moe.experts_per_token;
    if (!moe.any()) return;
    scores.reserve_discard(rows * scores_width(moe));
    weight.reserve_discard(pairs);
    expert.reserve_discard(pairs);
    place.reserve_discard(pairs);
    gathered.reserve_discard(pairs * spec.hidden);
    gate_up.reserve_discard(pairs * 2 * moe.ffn);
    act.reserve_discard(pairs * moe.ffn);
    y.reserve_discard(pairs * spec.hidden);
    if (moe.has_shared()) shared_y.reserve_discard(rows * spec.hidden);
  }

  MoeBuffers views(const MoeSpec& moe) {
    return {{scores.data(), scores_width(moe), expert.data(), weight.data(), place.data()},
            gathered.data(),
            gate_up.data(),
            act.data(),
            y.data(),
            shared_y.data()};
  }
};

}  // namespace troupe::model
