// The backward pass of one layer: turns the gradient of its output into the gradient of its input,
// and adds the gradients of its weights to the gradient store. Frozen weights are not in the store
// and cost no product. The pass reads what the forward kept (LayerBuffers) and recomputes `normed`
// and `act`. Every member of the team calls `layer_backward`. Members split outputs, never a sum,
// so the bits do not depend on the size of the team. Nothing is allocated inside.
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

// The work of the attention's backward pass, in units of (group, kv head), which write to disjoint
// parts of the KV pools.
class AttentionUnits {
 public:
  // Divides the units among `members` by their numbers of (row, key) pairs.
  void assign(const ForwardPlan& plan,
              std::int64_t kv_heads,
              const LayerWindows& windows,
              int members);
  // Copies the units to the memory of a team on a device, whose kernels read what `of` returns.
  void place(core::Memory& memory) { std::tie(placed_) = lists_.place(memory, units_); }
  std::span<const kernels::AttentionUnit> of(int member) const {
    const auto at = static_cast<std::size_t>(member);
    return {placed_ + begin_[at], begin_[at + 1] - begin_[at]};
  }
  // The number of (row, key) pairs in a member's units, over all layers.
  std::int64_t load(int member) const { return load_[static_cast<std::size_t>(member)]; }

 private:
  struct Priced {
    kernels::AttentionUnit unit;
    std::int64_t cost = 0;
    int member = 0;
  };
  std::vector<Priced> sorted_;
  std::vector<std::int64_t> load_;             // by member
  std::vector<kernels::AttentionUnit> units_;  // ordered by member
  std::vector<std::size_t> begin_;             // [members + 1]
  const kernels::AttentionUnit* placed_ = nullptr;
  core::PlacedLists lists_;
};

// Scratch that all layers use in turn: buffers of one row per row of the plan, KV pools of one
// layer and their gradients, and one ProductScratch per member.
struct BackwardScratch {
  core::Buffer<float> normed, act, dact, dnormed, dqkv, dattention;
  core::Buffer<float> dbranch;  // gradient of a branch before its norm, in families with such norms
  core::Buffer<float> dqk;      // gradient of q and k after their norms, if any
  core::Buffer<float> packed_wide, packed_hidden;  // inputs of linear maps, packed for weight_grad
  KvPool pool;
  core::Buffer<float> dk_pool, dv_pool;
  MoeGradScratch moe;
  AdapterScratch adapters;
  std::vector<ProductScratch> products;
  // Allocates in the team's memory. Call it outside parallel regions. `kv`: as in the forward pass.
  void reserve(core::TeamRunner& team,
               const ModelSpec& spec,
               std::int64_t rows,
               std::int64_t kv_blocks,
               kernels::KvDtype kv);
};

struct LayerBackward {
  const ParamStore& master;      // the weights that the forward's panels were packed from
  ParamStore& grads;             // receives the gradients of the trained tensors
  const PackedWeights& weights;  // norms and rotary tables
  const Lora* lora = nullptr;    // null: no adapters
  std::int64_t layer = 0;
  const ForwardPlan& plan;
  const AttentionUnits& units;
  // As the forward left them; the pass overwrites `gate_up` with its gradient.
  const LayerBuffers& io;
  std::int64_t kv_blocks = 0;  // blocks that the plan uses
  BackwardScratch& scratch;
  float* dx = nullptr;  // [rows, hidden] in: gradient of `io.out`; out: gradient of `io.x`
  const float* balance = nullptr;  // see SparseBackward::balance
};

void layer_backward(core::Team team, const LayerBackward& call);

// Adds each row of dx, times embed_scale, to its token's row of the embedding's gradient, in
// ascending order of rows, but for rows of the token `skipped`. Does nothing if the embedding is
// frozen.
void embedding_backward(core::Team team,
                        const ForwardPlan& plan,
                        const float* dx,
                        std::int32_t skipped,
                        ParamStore& grads);

// The number of KV blocks that a plan uses: one more than the highest block it names.
std::int64_t kv_blocks_of(const ForwardPlan& plan);

}  // namespace troupe::model
