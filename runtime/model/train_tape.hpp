// The forward and backward pass of training, without LibTorch. Runs the layers on a team, keeps
// what the backward pass needs (kept_layers.hpp, train_head.hpp), and carries the gradient of the
// residual stream back. train_graph.cpp turns its steps into autograd nodes. One owner, one thread;
// parallel regions start inside the methods. Kept logits may add a third to what the layers keep.
// Checkpointing changes no bit: the same code computes a layer's forward again from its kept input.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/forward.hpp"
#include "runtime/model/kept_layers.hpp"
#include "runtime/model/layer_grad.hpp"
#include "runtime/model/moe_balance.hpp"
#include "runtime/model/train_head.hpp"

#include <cstdint>

namespace troupe::model {

class WeightsGate;

struct TapeOptions {
  bool checkpointing = false;  // keep only each layer's input; recompute the rest
  const Lora* lora = nullptr;  // the adapters in the layout of the gradients, if any
  // Brings the master values of a part for its backward pass, where the packed weights have no gate
  // that does; null: they are there.
  WeightsGate* values = nullptr;
};

class TrainTape {
 public:
  // Null `grads`: forward only. The layout of `grads` says what is trained. All must outlive this
  // object.
  TrainTape(core::TeamRunner& team,
            const ParamStore& master,
            ParamStore* grads,
            TapeOptions options = {});

  // Sets the weight of the experts' load-balancing loss in the gradients, from the next micro-batch
  // on; 0 turns the loss off.
  void set_balance(double weight) { balance_weight_ = weight; }
  // The row of this token in the input embedding gets no gradient from now on; -1: every row gets
  // its own.
  void fix_embedding_of(std::int32_t token) { fixed_token_ = token; }
  // The loss of the last micro-batch, without its weight; valid after forward_final_norm.
  double balance_loss() const { return balance_.loss(); }

  // Starts a micro-batch. Leave `weights` and `plan` unchanged until its backward pass is done.
  void begin(const PackedWeights& weights, const ForwardPlan& plan);

  // The forward steps, in this order; the last is a forward step of head().
  void forward_embedding();
  void forward_layer(std::int64_t layer);
  void forward_final_norm();
  // The backward steps, in the reverse order, after one of head(). backward_final_norm fills dx();
  // each layer's, which can run only once, turns it from the gradient of the layer's output to that
  // of its input, and does nothing below the first trained layer.
  void backward_final_norm();
  void backward_layer(std::int64_t layer);
  void backward_embedding();

  // The input of layer i [rows, hidden], in the team's memory; for i = layers, the output of the
  // last.
  float* hidden(std::int64_t layer) { return kept_.hidden(layer); }
  TrainHead& head() { return head_; }
  const TrainHead& head() const { return head_; }
  core::Memory& memory() { return team_.memory(); }
  float* dx() { return dx_.data(); }  // [rows, hidden]
  const ForwardPlan& plan() const { return *plan_; }
  const ModelSpec& spec() const { return master_.spec(); }
  std::int64_t logit_rows() const { return static_cast<std::int64_t>(plan_->logit_rows.size()); }
  // Bytes of activations kept for the backward pass.
  std::uint64_t bytes() const { return kept_.bytes(); }

 private:
  WeightsGate* gate() const;

  core::TeamRunner& team_;
  const ParamStore& master_;
  ParamStore* grads_;
  const TapeOptions options_;
  const std::int64_t first_trained_;  // layers below it have no backward pass
  const PackedWeights* weights_ = nullptr;
  const ForwardPlan* plan_ = nullptr;
  KeptLayers kept_;
  TrainHead head_;
  std::int64_t next_backward_ = 0;  // one above the next layer to go back

  double balance_weight_ = 0;
  std::int32_t fixed_token_ = -1;
  LoadBalance balance_;
  ForwardScratch scratch_;  // only normed, act and moe are used
  KvPool pool_;             // room for one layer, used by all in turn
  std::int64_t kv_blocks_ = 0;
  AttentionUnits units_;
  BackwardScratch backward_;
  core::Buffer<float> dx_;
};

}  // namespace troupe::model
