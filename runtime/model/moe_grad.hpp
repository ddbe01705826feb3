// The backward pass of a layer of experts, on the choices that the forward made (no gradient goes
// through a choice, only through the weights of the chosen). Every member of the team calls this
// with the same arguments; outputs are split, never a sum. Nothing is allocated.
//   dw_e = dy . expert_e(x), made as (W_down^T dy) . act, so the answers themselves are not kept
//   norm_topk: dp_e = (dw_e - sum_j dw_j w_j) / S, S = sum of the chosen p; else dp_e = dw_e
//   dz_j = p_j (dp_j - sum_e p_e dp_e) of the router's logits z
// A load-balancing loss (moe_balance.hpp) adds its slope to dp of every expert.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/forward.hpp"
#include "runtime/model/moe_offsets.hpp"
#include "runtime/model/products.hpp"

#include <cstdint>

namespace troupe::model {

// Beside the forward's own scratch, which is used again. Sizes as in MoeBuffers.
struct MoeGradScratch {
  core::Buffer<float> dact;        // [pairs, ffn]
  core::Buffer<float> packed_act;  // of each expert's rows, one after another
  core::Buffer<float> packed_rows;
  void reserve(const ModelSpec& spec, std::int64_t rows);
};

struct SparseBackward {
  const ModelSpec& spec;
  const float* master = nullptr;  // flat weights, and where the layer's lie
  const MoeOffsets& at;
  float* grads = nullptr;  // flat gradients of the trained tensors
  const MoeOffsets& to;
  // As the forward left it; `scores` and `gate_up`s are overwritten by their gradients.
  const LayerBuffers& io;
  std::int64_t rows = 0;
  const float* normed = nullptr;   // [rows, hidden] input of the router and the experts; own rows
  const float* dy = nullptr;       // [rows, hidden]; own rows
  float* dnormed = nullptr;        // [rows, hidden] out; own rows when this returns
  const float* balance = nullptr;  // [experts] slope of a load-balancing loss in p; null: none
  // [rows, dense_ffn] each, of the shared expert.
  float* act = nullptr;
  float* dact = nullptr;
  float* packed_normed = nullptr;  // packed_size(hidden, rows)
  float* packed_act = nullptr;     // packed_size(dense_ffn, rows)
  MoeGradScratch& scratch;
  ProductScratch& products;
};

void sparse_backward(core::Team team, const SparseBackward& call);

// In place: the probabilities p of one row become the gradient of the router's logits. `dw` by
// choice; `balance` by expert, or null.
void routing_backward(const MoeSpec& spec,
                      float* p,
                      const std::int32_t* chosen,
                      const float* weight,
                      const float* dw,
                      const float* balance = nullptr);

}  // namespace troupe::model
