// The edge to LibTorch: the training forward as an autograd graph, one node for the embedding, each
// layer, the final norm and the head. Nodes only mark the order; the arithmetic both ways is ours
// (train_tape.hpp). Parameters are no leaves of the graph: `loss.backward()` adds their gradients
// to the gradient store. This header needs no ATen; include <ATen/ATen.h> where tensors are used.
#pragma once

#include "runtime/core/team.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"

#include <memory>

namespace at {
class Tensor;
}

namespace troupe::model {

class Lora;
struct TokenLogprobs;  // train_logprobs.hpp, for those who include ATen anyway

class TrainForward {
 public:
  // `master` holds the values that the weights of each call were packed from. Null `grads`: forward
  // only. The layout of `grads` says what is trained, `lora` holds the adapters that it has;
  // `checkpointing` trades time for memory and changes no bit. All outlive this object; one thread.
  TrainForward(core::TeamRunner& team,
               const ParamStore& master,
               ParamStore* grads,
               bool checkpointing = false,
               const Lora* lora = nullptr);
  ~TrainForward();

  // Log-probs of the targets, with grad. The graph lives until the next call, which reuses its
  // memory: call backward() before, and at most once. `plan` and `weights` stay unchanged until
  // then.
  TokenLogprobs logprobs(const PackedWeights& weights,
                         const ForwardPlan& plan,
                         const TokenTargets& targets,
                         float temperature,
                         bool want_entropy);

  // Of a model with a score head: its value at each of plan.logit_rows, with grad. The same rules.
  at::Tensor values(const PackedWeights& weights, const ForwardPlan& plan);

  // The load-balancing loss of a model with experts (moe_balance.hpp): `weight` times its gradient
  // goes with that of each call from now on, whatever the loss that is called backward on; 0, as at
  // first: it is not taken. balance_loss(): of the last call, without the weight.
  void set_balance(double weight);
  double balance_loss() const;

  std::uint64_t bytes() const;  // of kept activations

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe::model
