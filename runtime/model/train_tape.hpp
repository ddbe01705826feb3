// The training forward and backward without LibTorch: runs the stack layer by layer on a team,
// keeps what the backward pass needs in an arena that is reused from micro-batch to micro-batch,
// and carries the gradient of the residual stream back. train_graph.cpp turns its steps into
// autograd nodes. One owner, one thread; parallel regions start inside the methods. Memory: rows x
// (layers - first trained) x (2 hidden + qkv + q + heads + 2 ffn + 2) floats, more by 2 hidden + 2
// with norms of branches and by q + k + heads + kv heads with norms of heads; with checkpointing
// rows x (layers - first trained) x hidden; and scratch of a few rows x ffn. Checkpointing changes
// no bit: a layer's forward is computed again from its kept input by the same code.
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

struct TapeOptions {
  bool checkpointing = false;  // keep each layer's input only, compute the rest again going back
  const Lora* lora = nullptr;  // of the adapters that the gradients' layout has
};

class TrainTape {
 public:
  // Null `grads`: forward only. The layout of `grads` says what is trained. All outlive this
  // object.
  TrainTape(core::TeamRunner& team,
            const ParamStore& master,
            ParamStore* grads,
            TapeOptions options = {});

  // What the load-balancing loss of the experts counts for in the gradients of the micro-batches
  // that begin from now on; 0: it is not taken. Its sums are made by forward_layer.
  void set_balance(double weight) { balance_weight_ = weight; }
  // Of the last micro-batch, without its weight, after forward_final_norm.
  double balance_loss() const { return balance_.loss(); }

  // Starts a micro-batch; `weights` and `plan` stay unchanged until its backward pass is done.
  void begin(const PackedWeights& weights, const ForwardPlan& plan);

  // The forward steps, in this order.
  void forward_embedding();
  void forward_layer(std::int64_t layer);
  void forward_final_norm();
  // The last step is one of these, as the model's head is.
  void forward_head(const TokenTargets& targets, float temperature, bool want_entropy);
  void forward_values();

  // Their results: [rows, hidden] into layer i, i <= layers, and [logit rows, hidden] in the team's
  // memory; by target on the host.
  float* hidden(std::int64_t layer) { return hidden_[static_cast<std::size_t>(layer)]; }
  float* head_in() { return head_in_.data(); }
  const std::vector<float>& logprobs() const { return logprobs_; }
  const std::vector<float>& entropies() const { return entropies_; }  // empty when not wanted
  const std::vector<float>& values() const { return values_; }        // by logit row

  // The backward steps, in the reverse order. Each layer's can run once only.
  // dhead_in() from the gradients by target (null: none), which are on the host; the others read
  // the team's memory.
  void backward_head(const float* dlogprobs, const float* dentropies);
  void backward_values(const float* dvalues);       // the same, by logit row
  void backward_final_norm(const float* dhead_in);  // fills dx()
  // dx() of its output to dx() of its input; nothing where no gradient is wanted any more.
  void backward_layer(std::int64_t layer);
  void backward_embedding();

  core::Memory& memory() { return team_.memory(); }
  float* dx() { return dx_.data(); }  // [rows, hidden]
  float* dhead_in() { return dhead_in_.data(); }
  const ForwardPlan& plan() const { return *plan_; }
  const ModelSpec& spec() const { return master_.spec(); }
  std::int64_t logit_rows() const { return static_cast<std::int64_t>(plan_->logit_rows.size()); }
  std::uint64_t bytes() const;  // of what is kept for the backward pass

 private:
  void carve(std::int64_t rows);
  HeadCall head_call();

  core::TeamRunner& team_;
  const ParamStore& master_;
  ParamStore* grads_;
  const TapeOptions options_;
  const std::int64_t first_trained_;  // layers below it have no backward pass
  const PackedWeights* weights_ = nullptr;
  const ForwardPlan* plan_ = nullptr;
  TokenTargets targets_;

  std::int64_t kept_floats_ = 0;        // of this micro-batch's layers
  core::Buffer<float> arena_;           // kept activations of all layers
  core::Buffer<std::int32_t> experts_;  // kept choices of all layers of experts
  std::vector<LayerBuffers> layers_;    // views into it, some shared
  std::vector<float*> hidden_;          // [layers + 1]; the same up to the first trained layer's
  std::int64_t next_backward_ = 0;      // the layer whose turn it is

  double balance_weight_ = 0;
  LoadBalance balance_;
  ForwardScratch scratch_;  // `normed` and `act` of the forward
  KvPool pool_;             // one layer's, used by all in turn
  std::int64_t kv_blocks_ = 0;
  core::Buffer<float> last_in_, last_inv_rms_, head_in_;  // logit rows of the final norm
  HeadScratch head_;
  ValueScratch value_head_;
  std::vector<float> logprobs_, entropies_, values_;

  AttentionUnits units_;
  BackwardScratch backward_;
  core::Buffer<float> dx_, dhead_in_, dlast_;
};

}  // namespace troupe::model
