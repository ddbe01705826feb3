#include "runtime/model/train_tape.hpp"

#include "runtime/core/check.hpp"
#include "runtime/model/dense_rows.hpp"
#include "runtime/model/trained_layout.hpp"
#include "runtime/model/weights_gate.hpp"

#include <algorithm>

namespace troupe::model {
namespace {

using core::Team;
using kernels::ops;

std::int64_t rounded(std::int64_t count) {
  return (count + 15) / 16 * 16;
}

// Logits kept for the backward pass take at most 1 / kLogitsShare of what the layers keep.
constexpr std::int64_t kLogitsShare = 3;

// Allocates, with `take(floats)`, what a layer keeps for its backward pass, except its input and
// output.
template <class Take>
void take_inner(const ModelSpec& spec, std::int64_t rows, LayerBuffers& io, Take&& take) {
  io.qkv = take(rows * spec.qkv_width());
  io.attention = take(rows * spec.q_width());
  io.lse = take(rows * spec.heads);
  io.x_mid = take(rows * spec.hidden);
  io.gate_up = take(rows * 2 * spec.dense_ffn());
  io.inv_rms1 = take(rows);
  io.inv_rms2 = take(rows);
  if (spec.qk_norm) {
    io.qk_raw = take(rows * (spec.q_width() + spec.kv_width()));
    io.inv_rms_qk = take(rows * (spec.heads + spec.kv_heads));
  }
  if (spec.post_norms) {
    io.attention_out = take(rows * spec.hidden);
    io.ffn_out = take(rows * spec.hidden);
    io.inv_rms_attention_out = take(rows);
    io.inv_rms_ffn_out = take(rows);
  }
  if (spec.moe.any()) {
    const std::int64_t pairs = rows * spec.moe.experts_per_token;
    io.moe.routing.scores = take(rows * scores_width(spec.moe));
    io.moe.routing.weight = take(pairs);
    io.moe.gate_up = take(pairs * 2 * spec.moe.ffn);
  }
}

std::int64_t inner_floats(const ModelSpec& spec, std::int64_t rows) {
  std::int64_t floats = 0;
  LayerBuffers none;
  take_inner(spec, rows, none, [&](std::int64_t count) -> float* {
    floats += rounded(count);
    return nullptr;
  });
  return floats;
}

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
                                      : first_trained_layer(grads->layout())) {}

void TrainTape::carve(std::int64_t rows) {
  const ModelSpec& s = spec();
  // One set of inner buffers (take_inner) for each layer that has a backward pass, or one set that
  // all layers use in turn.
  const std::int64_t trained = s.layers - first_trained_;
  const std::int64_t sets = options_.checkpointing ? 1 : std::max<std::int64_t>(trained, 1);
  kept_floats_ = inner_floats(s, rows) * sets + rounded(rows * s.hidden) * (1 + trained);
  arena_.reserve_discard(kept_floats_, team_.memory());
  experts_.reserve_discard(sets * rows * s.moe.experts_per_token);
  float* next = arena_.data();
  const auto take = [&](std::int64_t count) {
    float* piece = next;
    next += rounded(count);
    return piece;
  };
  std::vector<LayerBuffers> inner(static_cast<std::size_t>(sets));
  for (LayerBuffers& io : inner) {
    io.moe = scratch_.moe.views(s.moe);
    take_inner(s, rows, io, take);
    io.normed = scratch_.normed.data();
    io.act = scratch_.act.data();
    io.moe.routing.expert = experts_.data() + (&io - inner.data()) * rows * s.moe.experts_per_token;
  }
  layers_.clear();
  hidden_.assign(1, take(rows * s.hidden));
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    const std::int64_t set = std::clamp<std::int64_t>(layer - first_trained_, 0, sets - 1);
    LayerBuffers io = inner[static_cast<std::size_t>(set)];
    io.x = hidden_.back();
    io.out = layer < first_trained_ ? hidden_.back() : take(rows * s.hidden);
    layers_.push_back(io);
    hidden_.push_back(io.out);
  }
}

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
  carve(rows);
  kv_blocks_ = kv_blocks_of(plan);
  pool_.reserve_discard(s, kv_blocks_, memory, weights.kv_dtype());
  last_in_.reserve_discard(logit_rows() * s.hidden, memory);
  last_inv_rms_.reserve_discard(logit_rows(), memory);
  head_in_.reserve_discard(logit_rows() * s.hidden, memory);
  next_backward_ = s.layers;
  balance_.start(s.moe, s.moe.any() ? balance_weight_ : 0);
  if (grads_ == nullptr) return;
  units_.assign(plan, s.kv_heads, s.layer_windows(), team_.size());
  units_.place(memory);
  backward_.reserve(team_, s, rows, kv_blocks_, weights.kv_dtype());
  backward_.adapters.reserve(memory, options_.lora, s.layers, rows);
  dx_.reserve_discard(rows * s.hidden, memory);
  dhead_in_.reserve_discard(logit_rows() * s.hidden, memory);
  dlast_.reserve_discard(logit_rows() * s.hidden, memory);
}

WeightsGate* TrainTape::gate() const {
  return weights_->gate() != nullptr ? weights_->gate() : options_.values;
}

// The final norm and the head are one part of the model, computed in two steps.
void TrainTape::open_last(bool backward) {
  if (gate() != nullptr) gate()->open(parts_of(spec()) - 1, backward);
}

void TrainTape::close_last(bool backward) {
  if (gate() != nullptr) gate()->close(parts_of(spec()) - 1, backward);
}

void TrainTape::forward_embedding() {
  const OpenPart open(gate(), 0, false);
  team_.run([&](Team team) {
    kernels::flush_denormals();
    embed_rows(team, *weights_, *plan_, hidden_[0]);
  });
}

void TrainTape::forward_layer(std::int64_t layer) {
  const LayerBuffers& io = layers_[static_cast<std::size_t>(layer)];
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
  open_last(false);
  team_.run([&](Team team) {
    kernels::flush_denormals();
    normalise_logit_rows(team, *weights_, *plan_, hidden_.back(), last_in_.data(), head_in_.data(),
                         last_inv_rms_.data());
  });
}

HeadCall TrainTape::head_call() {
  return {*weights_, head_in_.data(), logit_rows(), head_};
}

void TrainTape::forward_head(const TokenTargets& targets,
                             float temperature,
                             bool want_entropy,
                             const TeacherRows* teacher) {
  TROUPE_CHECK(spec().head == HeadKind::kLanguage, "log-probs of a score model");
  targets_ = targets;
  head_.prepare(team_, spec(),
                {.targets = targets_,
                 .rows = logit_rows(),
                 .temperature = temperature,
                 .entropy = want_entropy,
                 .backward = grads_ != nullptr,
                 .logits_max = kept_floats_ / kLogitsShare,
                 .teacher = teacher});
  const HeadCall call = head_call();
  team_.run([&](Team team) { head_logprobs(team, call); });
  close_last(false);
  const auto count = static_cast<std::size_t>(targets.size());
  logprobs_.resize(count);
  entropies_.resize(want_entropy ? count : 0);
  head_.results(logprobs_, entropies_);
  divergences_.clear();
  if (teacher == nullptr) return;
  for (const DivergenceRow& row : head_.divergences())
    divergences_.push_back(static_cast<float>(row.divergence));
}

void TrainTape::forward_values() {
  value_head_.prepare(team_, spec(), logit_rows(), grads_ != nullptr);
  team_.run([&](Team team) {
    value_forward(team, *weights_, head_in_.data(), logit_rows(), value_head_.values.data());
  });
  close_last(false);
  values_.resize(static_cast<std::size_t>(logit_rows()));
  value_head_.values.download(values_);
}

void TrainTape::backward_values(const float* dvalues) {
  TROUPE_CHECK(grads_ != nullptr, "backward of a forward-only tape");
  open_last(true);
  value_head_.dvalues.upload({dvalues, values_.size()});
  const ValueGrad grad{head_in_.data(), logit_rows(), value_head_.dvalues.data(),
                       master_,         *grads_,      dhead_in_.data()};
  team_.run([&](Team team) { value_backward(team, grad, value_head_); });
}

void TrainTape::backward_head(const float* dlogprobs,
                              const float* dentropies,
                              const float* ddivergences) {
  TROUPE_CHECK(grads_ != nullptr, "backward of a forward-only tape");
  open_last(true);
  head_.set_gradients(dlogprobs, dentropies);
  if (head_.divergence.on()) head_.set_divergence_gradients(ddivergences);
  const HeadCall call = head_call();
  const HeadGrad grad{master_, *grads_, dhead_in_.data()};
  team_.run([&](Team team) { head_backward(team, call, grad); });
  head_.kept = false;
}

void TrainTape::backward_final_norm(const float* dhead_in) {
  TROUPE_CHECK(grads_ != nullptr, "backward of a forward-only tape");
  const std::int64_t width = spec().hidden;
  const std::int64_t count = logit_rows();
  team_.run([&](Team team) {
    kernels::flush_denormals();
    const core::Range own = team.share(count);
    ops().zero(dlast_.data(), own.times(width));
    ops().zero(dx_.data(), team.share(plan_->rows()).times(width));
    if (!own.empty()) {
      norm_rows_backward(width, last_in_.data(), weights_->final_norm(), last_inv_rms_.data(),
                         dhead_in, dlast_.data(), own);
    }
    const core::Range columns = team.share(width, kernels::kPanel);
    const std::int64_t norm = grads_->layout().final_norm;
    if (norm >= 0 && !columns.empty()) {
      ops().rmsnorm_weight_grad({.rows = count,
                                 .x = last_in_.data(),
                                 .ldx = width,
                                 .inv_rms = last_inv_rms_.data(),
                                 .dy = dhead_in,
                                 .ldy = width,
                                 .dweight = grads_->data() + norm},
                                columns);
    }
    team.barrier();
    if (own.empty()) return;
    ops().copy_rows({.columns = width,
                     .from = dlast_.data(),
                     .ldf = width,
                     .to = dx_.data(),
                     .ldt = width,
                     .to_row = plan_->view().logit_rows},
                    own);
  });
  close_last(true);
}

void TrainTape::backward_layer(std::int64_t layer) {
  TROUPE_CHECK(grads_ != nullptr, "backward of a forward-only tape");
  TROUPE_CHECK(layer == next_backward_ - 1, "a layer's backward pass runs once, last layer first");
  next_backward_ = layer;
  if (layer < first_trained_) return;
  const OpenPart open(gate(), 1 + layer, true);
  const LayerBuffers& io = layers_[static_cast<std::size_t>(layer)];
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

std::uint64_t TrainTape::bytes() const {
  return static_cast<std::uint64_t>(arena_.size() + experts_.size()) * sizeof(float);
}

}  // namespace troupe::model
