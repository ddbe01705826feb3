// The backward pass of one layer, written by hand on the kernels: from the gradient of its output
// to the gradient of its input. The gradients of the weights that the gradient store has are added
// to it; for others no product is computed. The pass needs what the forward kept (LayerBuffers) and
// computes `normed` and `act` again. Every member of the team calls `layer_backward`; outputs are
// split, never a sum, so the bits do not depend on the size of the team. Nothing is allocated
// inside.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/placed_lists.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/forward.hpp"
#include "runtime/model/lora_grad.hpp"
#include "runtime/model/moe_grad.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/plan.hpp"
#include "runtime/model/products.hpp"

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

namespace troupe::model {

// The work of the attention's backward pass: units of (group, kv head), which touch KV blocks of
// their own, given to members by cost.
class AttentionUnits {
 public:
  void assign(const ForwardPlan& plan,
              std::int64_t kv_heads,
              const LayerWindows& windows,
              int members);
  // Sends them to the memory of a team on a device, whose kernels read `of`.
  void place(core::Memory& memory) { std::tie(placed_) = lists_.place(memory, units_); }
  std::span<const kernels::AttentionUnit> of(int member) const {
    const auto at = static_cast<std::size_t>(member);
    return {placed_ + begin_[at], begin_[at + 1] - begin_[at]};
  }
  // Pairs of row and key of a member's units, over all layers.
  std::int64_t load(int member) const { return load_[static_cast<std::size_t>(member)]; }

 private:
  struct Priced {
    kernels::AttentionUnit unit;
    std::int64_t cost = 0;
    int member = 0;
  };
  std::vector<Priced> sorted_;
  std::vector<std::int64_t> load_;             // by member
  std::vector<kernels::AttentionUnit> units_;  // member after member
  std::vector<std::size_t> begin_;             // [members + 1]
  const kernels::AttentionUnit* placed_ = nullptr;
  core::PlacedLists lists_;
};

// Scratch that all layers use in turn. [rows, ...] buffers; `members` product scratches.
struct BackwardScratch {
  core::Buffer<float> normed, act, dact, dnormed, dqkv, dattention;
  core::Buffer<float> dbranch;  // of a product before its norm, where a family has such
  core::Buffer<float> dqk;      // of q and k after their norms, where a family has such
  core::Buffer<float> packed_wide, packed_hidden;  // operands of the weights' gradients
  core::Buffer<float> k_pool, v_pool, dk_pool, dv_pool;
  MoeGradScratch moe;
  AdapterScratch adapters;
  std::vector<ProductScratch> products;
  // Outside a region; in the memory of the team.
  void reserve(core::TeamRunner& team,
               const ModelSpec& spec,
               std::int64_t rows,
               std::int64_t kv_blocks);
};

struct LayerBackward {
  const ParamStore& master;      // the values that the forward's panels were packed from
  ParamStore& grads;             // of the trained tensors
  const PackedWeights& weights;  // norms and rotary tables
  const Lora* lora = nullptr;    // null: no adapters
  std::int64_t layer = 0;
  const ForwardPlan& plan;
  const AttentionUnits& units;
  // As the forward left them; `gate_up` is overwritten by its gradient.
  const LayerBuffers& io;
  std::int64_t kv_blocks = 0;  // blocks that the plan uses
  BackwardScratch& scratch;
  float* dx = nullptr;  // [rows, hidden] in: gradient of `io.out`; out: gradient of `io.x`
  const float* balance = nullptr;  // as SparseBackward's
};

void layer_backward(core::Team team, const LayerBackward& call);

// Adds dx's rows, scaled as the embeddings are, to the embedding's gradient, rows ascending.
void embedding_backward(core::Team team,
                        const ForwardPlan& plan,
                        const float* dx,
                        ParamStore& grads);

// The most blocks that a plan's slots and tables name.
std::int64_t kv_blocks_of(const ForwardPlan& plan);

}  // namespace troupe::model
