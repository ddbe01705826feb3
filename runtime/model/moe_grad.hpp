// The backward pass of a mixture-of-experts layer's feed-forward part, for the experts that the
// forward pass chose. No gradient goes through a choice, only through the weights w_e of the chosen
// experts. Members split outputs, never a sum. Nothing is allocated.
//   dw_e = dy . expert_e(x), computed as (W_down^T dy) . act, so the experts' outputs are not kept
//   norm_topk: dp_e = (dw_e - sum_j dw_j w_j) / S, S = sum of the chosen p; else dp_e = dw_e
//   dz_j = p_j (dp_j - sum_e p_e dp_e), where z are the router's logits
// A load-balancing loss (moe_balance.hpp) adds its slope to dp_e of every expert.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/forward.hpp"
#include "runtime/model/moe_offsets.hpp"
#include "runtime/model/products.hpp"

#include <cstdint>

namespace troupe::model {

// Scratch in addition to the forward pass's, which is reused. Sizes as in MoeBuffers.
struct MoeGradScratch {
  core::Buffer<float> dact;         // [pairs, ffn]
  core::Buffer<float> packed_act;   // rows of `act`, packed expert by expert for weight_grad
  core::Buffer<float> packed_rows;  // rows of `gathered`, likewise
  void reserve(const ModelSpec& spec, std::int64_t rows);
};

struct SparseBackward {
  const ModelSpec& spec;
  const float* master = nullptr;  // flat weights
  const MoeOffsets& at;           // where the layer's tensors start in `master`
  float* grads = nullptr;         // flat gradients of the trained tensors
  const MoeOffsets& to;           // where the layer's tensors start in `grads`
  // As the forward pass left it; `scores` and each `gate_up` are overwritten with their gradients.
  const LayerBuffers& io;
  std::int64_t rows = 0;
  // At the call a member needs only its own share of the rows of normed and dy to be complete; on
  // return its own share of dnormed is.
  const float* normed = nullptr;   // [rows, hidden] input of router and experts
  const float* dy = nullptr;       // [rows, hidden] gradient of the output
  float* dnormed = nullptr;        // [rows, hidden] gradient of `normed`, written
  const float* balance = nullptr;  // [experts] LoadBalance::slope, or null
  float* act = nullptr;            // [rows, shared_ffn] scratch of the shared expert
  float* dact = nullptr;           // the same
  float* packed_normed = nullptr;  // scratch, packed_size(hidden, rows) floats
  float* packed_act = nullptr;     // scratch, packed_size(shared_ffn, rows) floats
  MoeGradScratch& scratch;
  ProductScratch& products;
};

// Every member of the team calls it with the same arguments. Contains barriers.
void sparse_backward(core::Team team, const SparseBackward& call);

// Replaces the probabilities p [experts] of one row by the gradient of the router's logits.
// `chosen`, `weight` and `dw` are [k], by choice; `balance` is [experts] or null.
void routing_backward(const MoeSpec& spec,
                      float* p,
                      const std::int32_t* chosen,
                      const float* weight,
                      const float* dw,
                      const float* balance = nullptr);

}  // namespace troupe::model
