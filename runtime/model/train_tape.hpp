// The forward and backward pass of training, without LibTorch. Runs the layers on a team, keeps
// what the backward pass needs in an arena that is reused from micro-batch to micro-batch, and
// carries the gradient of the residual stream back. train_graph.cpp turns its steps into autograd
// nodes. One owner, one thread; parallel regions start inside the methods. Kept floats per row and
// trained layer: 2 hidden + qkv + q + heads + 2 ffn + 2; norms of branches add 2 hidden + 2, norms
// of heads q + k + heads + kv heads, experts k (2 expert ffn + 2) + the router's columns. With
// checkpointing: hidden per row and layer, and the rest for one layer only. Kept logits may add a
// third. Checkpointing changes no bit: the same code computes a layer's forward again from its kept
// input.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/forward.hpp"
#include "runtime/model/head_grad.hpp"
#include "runtime/model/layer_grad.hpp"
#include "runtime/model/moe_balance.hpp"
#include "runtime/model/value_head.hpp"

#include <cstdint>
#include <vector>

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

  // The forward steps, in this order.
  void forward_embedding();
  void forward_layer(std::int64_t layer);
  void forward_final_norm();
  // The last step is one of these, depending on the model's head.
  // With a teacher it measures the divergence from it too.
  void forward_head(const TokenTargets& targets,
                    float temperature,
                    bool want_entropy,
                    const TeacherRows* teacher = nullptr);
  void forward_values();

  // Results of the forward steps. In the team's memory: hidden(i), the input of layer i [rows,
  // hidden] (for i = layers, the output of the last), and the head's input [logit rows, hidden]. On
  // the host: log-probs and entropies by target, and values.
  float* hidden(std::int64_t layer) { return hidden_[static_cast<std::size_t>(layer)]; }
  float* head_in() { return head_in_.data(); }
  const std::vector<float>& logprobs() const { return logprobs_; }
  const std::vector<float>& entropies() const { return entropies_; }      // empty when not wanted
  const std::vector<float>& divergences() const { return divergences_; }  // by target
  const std::vector<float>& values() const { return values_; }            // by logit row

  // The backward steps, in the reverse order. Each layer's can run only once. backward_head fills
  // dhead_in() from the gradients of log-probs, entropies and divergences: on the host, by target,
  // null for none.
  void backward_head(const float* dlogprobs,
                     const float* dentropies,
                     const float* ddivergences = nullptr);
  void backward_values(const float* dvalues);       // the same, from gradients by logit row
  void backward_final_norm(const float* dhead_in);  // fills dx()
  // Turns dx() from the gradient of the layer's output to that of its input. Does nothing below the
  // first trained layer.
  void backward_layer(std::int64_t layer);
  void backward_embedding();

  core::Memory& memory() { return team_.memory(); }
  float* dx() { return dx_.data(); }              // [rows, hidden]
  float* dhead_in() { return dhead_in_.data(); }  // [logit rows, hidden]
  const ForwardPlan& plan() const { return *plan_; }
  const ModelSpec& spec() const { return master_.spec(); }
  std::int64_t logit_rows() const { return static_cast<std::int64_t>(plan_->logit_rows.size()); }
  std::uint64_t bytes() const;  // of activations kept for the backward pass

 private:
  void carve(std::int64_t rows);
  HeadCall head_call();
  WeightsGate* gate() const;
  void open_last(bool backward);
  void close_last(bool backward);

  core::TeamRunner& team_;
  const ParamStore& master_;
  ParamStore* grads_;
  const TapeOptions options_;
  const std::int64_t first_trained_;  // layers below it have no backward pass
  const PackedWeights* weights_ = nullptr;
  const ForwardPlan* plan_ = nullptr;
  TokenTargets targets_;

  std::int64_t kept_floats_ = 0;        // floats that this micro-batch's layers keep
  core::Buffer<float> arena_;           // kept activations of all layers
  core::Buffer<std::int32_t> experts_;  // kept choices of all layers of experts
  std::vector<LayerBuffers> layers_;    // views into arena_, some shared
  std::vector<float*> hidden_;          // [layers + 1]; one buffer up to the first trained layer
  std::int64_t next_backward_ = 0;      // one above the next layer to go back

  double balance_weight_ = 0;
  std::int32_t fixed_token_ = -1;
  LoadBalance balance_;
  ForwardScratch scratch_;  // only normed, act and moe are used
  KvPool pool_;             // room for one layer, used by all in turn
  std::int64_t kv_blocks_ = 0;
  core::Buffer<float> last_in_, last_inv_rms_, head_in_;  // the final norm's logit rows
  HeadScratch head_;
  ValueScratch value_head_;
  std::vector<float> logprobs_, entropies_, divergences_, values_;

  AttentionUnits units_;
  BackwardScratch backward_;
  core::Buffer<float> dx_, dhead_in_, dlast_;
};

}  // namespace troupe::model
