// The backward pass of a mixture-of-experts layer, for the choices that the forward made. No
// gradient goes through a choice, only through the weights of the chosen experts. Every member of
// the team calls this with the same arguments. Members split outputs, never a sum. Nothing is
// allocated.
//   dw_e = dy . expert_e(x), computed as (W_down^T dy) . act, so the experts' outputs are not kept
//   norm_topk: dp_e = (dw_e - sum_j dw_j w_j) / S, S = sum of the chosen p; else dp_e = dw_e
//   dz_j = p_j (dp_j - sum_e p_e dp_e), where z are the router's logits
// A load-balancing loss (moe_balance.hpp) adds its slope to dp of every expert.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/forward.hpp"
#include "runtime/model/moe_offsets.hpp"
#include "runtime/model/products.hpp"

#include <cstdint>

namespace troupe::model {

// Scratch in addition to the forward's, which is reused. Sizes as in MoeBuffers.
struct MoeGradScratch {
  core::Buffer<float> dact;        // [pairs, ffn]
  core::Buffer<float> packed_act;  // each expert's rows, one expert after another
  core::Buffer<float> packed_rows;
  void reserve(const ModelSpec& spec, std::int64_t rows);
};

struct SparseBackward {
  const ModelSpec& spec;
  const float* master = nullptr;  // flat weights; `at` has the offsets of the layer's
  const MoeOffsets& at;
  float* grads = nullptr;  // flat gradients of the trained tensors; `to` has their offsets
  const MoeOffsets& to;
  // As the forward left it; `scores` and each `gate_up` are overwritten with their gradients.
  const LayerBuffers& io;
  std::int64_t rows = 0;
  const float* normed = nullptr;   // [rows, hidden] input of router and experts; own rows
  const float* dy = nullptr;       // [rows, hidden]; own rows
  float* dnormed = nullptr;        // [rows, hidden] out; on return, own rows
  const float* balance = nullptr;  // [experts] dloss/dp of a load-balancing loss; or null
  // The shared expert's, [rows, dense_ffn] each.
  float* act = nullptr;
  float* dact = nullptr;
  float* packed_normed = nullptr;  // packed_size(hidden, rows)
  float* packed_act = nullptr;     // packed_size(dense_ffn, rows)
  MoeGradScratch& scratch;
  ProductScratch& products;
};

void sparse_backward(core::Team team, const SparseBackward& call);

// Replaces the probabilities p of one row by the gradient of the router's logits. `dw` is indexed
// by choice, `balance` by expert; `balance` may be null.
void routing_backward(const MoeSpec& spec,
                      float* p,
                      const std::int32_t* chosen,
                      const float* weight,
                      const float* dw,
                      const float* balance = nullptr);

}  // namespace troupe::model
