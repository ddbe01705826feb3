#include "runtime/model/train_tape.hpp"

#include "runtime/core/check.hpp"
#include "runtime/model/trained_layout.hpp"
#include "runtime/model/weights_gate.hpp"

#include <algorithm>

namespace troupe::model {
namespace {

using core::Team;

// Logits kept for the backward pass take at most 1 / kLogitsShare of what the layers keep.
constexpr std::int64_t kLogitsShare = 3;

}  // namespace

TrainTape::TrainTape(core::TeamRunner& team,
                     const ParamStore& master,
                     ParamStore* grads,
                     TapeOptions options)
    : team_(team),
      master_(master),
      grads_(grads),
      options_(options),
      first_trained_(grads == nullptr ? master.spec().layers
                                      : first_trained_layer(grads->layout())),
      kept_(first_trained_, options.checkpointing),
      head_(team, master, grads) {}

void TrainTape::begin(const PackedWeights& weights, const ForwardPlan& plan) {
  core::Memory& memory = team_.memory();
  // On a device, bf16-compute gives a row the same bits in every batch, as the exact dtypes do.
  const bool exact =
      weights.dtype() == kernels::PanelDtype::kF32 || weights.dtype() == kernels::PanelDtype::kBf16;
  TROUPE_CHECK(
      exact || (weights.dtype() == kernels::PanelDtype::kBf16Compute && !memory.on_host()),
      "a trainer computes with f32 or bf16 weights, on a device with bf16-compute as well");
  TROUPE_CHECK(plan.placed_in(memory) && &weights.memory() == &memory,
               "plan and weights are in the memory of the team");
  weights_ = &weights;
  plan_ = &plan;
  const ModelSpec& s = spec();
  const std::int64_t rows = plan.rows();
  scratch_.normed.reserve_discard(rows * s.hidden, memory);
  scratch_.act.reserve_discard(rows * s.dense_ffn(), memory);
  scratch_.moe.reserve(s, rows);
  kept_.carve(s, rows, scratch_, memory);
  head_.begin(weights, plan, gate(), kept_.floats() / kLogitsShare);
  kv_blocks_ = kv_blocks_of(plan);
  pool_.reserve_discard(s, kv_blocks_, memory, weights.kv_dtype());
  next_backward_ = s.layers;
  balance_.start(s.moe, s.moe.any() ? balance_weight_ : 0);
  if (grads_ == nullptr) return;
  units_.assign(plan, s.kv_heads, s.layer_windows(), team_.size());
  units_.place(memory);
  backward_.reserve(team_, s, rows, kv_blocks_, weights.kv_dtype());
  backward_.adapters.reserve(memory, options_.lora, s.layers, rows);
  dx_.reserve_discard(rows * s.hidden, memory);
}

WeightsGate* TrainTape::gate() const {
  return weights_->gate() != nullptr ? weights_->gate() : options_.values;
}

void TrainTape::forward_embedding() {
  const OpenPart open(gate(), 0, false);
  team_.run([&](Team team) {
    kernels::flush_denormals();
    embed_rows(team, *weights_, *plan_, hidden(0));
  });
}

void TrainTape::forward_layer(std::int64_t layer) {
  const LayerBuffers& io = kept_.layer(layer);
  const bool balances = balance_.on() && spec().moe.sparse(layer);
  const OpenPart open(gate(), 1 + layer, false);
  team_.run([&](Team team) {
    kernels::flush_denormals();
    layer_forward(team, *weights_, layer, *plan_, pool_.k(layer), pool_.v(layer), io);
    if (!balances) return;
    team.barrier();
    balance_.add(team, spec().moe, io.moe.routing, plan_->rows());
  });
  if (balances) balance_.count(plan_->rows());
}

void TrainTape::forward_final_norm() {
  balance_.finish();
  head_.forward_norm(hidden(spec().layers));
}

void TrainTape::backward_final_norm() {
  head_.backward_norm(dx());
}

void TrainTape::backward_layer(std::int64_t layer) {
  TROUPE_CHECK(grads_ != nullptr, "backward of a forward-only tape");
  TROUPE_CHECK(layer == next_backward_ - 1, "a layer's backward pass runs once, last layer first");
  next_backward_ = layer;
  if (layer < first_trained_) return;
  const OpenPart open(gate(), 1 + layer, true);
  const LayerBuffers& io = kept_.layer(layer);
  LayerBuffers again = io;
  again.out = nullptr;  // kept as the next layer's input
  const LayerBackward call{master_,    *grads_,   *weights_,  options_.lora,
                           layer,      *plan_,    units_,     io,
                           kv_blocks_, backward_, dx_.data(), balance_.slope()};
  team_.run([&](Team team) {
    kernels::flush_denormals();
    if (options_.checkpointing) {
      layer_forward(team, *weights_, layer, *plan_, pool_.k(layer), pool_.v(layer), again);
    }
    layer_backward(team, call);
  });
}

void TrainTape::backward_embedding() {
  team_.run([&](Team team) {
    kernels::flush_denormals();
    embedding_backward(team, *plan_, dx_.data(), fixed_token_, *grads_);
  });
}

}  // namespace troupe::model
