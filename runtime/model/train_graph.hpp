// The boundary to LibTorch: the training forward as an autograd graph, with one node each for the
// embedding, every layer, the final norm and the head. Nodes only define the order; Troupe's own
// code computes both passes (train_tape.hpp). Parameters are not leaves of the graph:
// `loss.backward()` adds their gradients to the gradient store. This header needs no ATen; include
// <ATen/ATen.h> where tensors are used.
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
class WeightsGate;
struct TeacherRows;    // divergence.hpp
struct TokenLogprobs;  // train_logprobs.hpp, which includes ATen

class TrainForward {
 public:
  // `master` holds the values that the weights of each call were packed from. Null `grads`: forward
  // only. The layout of `grads` says what is trained; `lora` holds its adapters, if any. `values`
  // brings parts of `master` that are not always there. `checkpointing` trades time for memory and
  // changes no bit. All must outlive this object; one thread.
  TrainForward(core::TeamRunner& team,
               const ParamStore& master,
               ParamStore* grads,
               bool checkpointing = false,
               const Lora* lora = nullptr,
               WeightsGate* values = nullptr);
  ~TrainForward();

  // Log-probs of the targets, with grad. The next call of logprobs or values reuses the graph's
  // memory, so call backward() before it, and at most once. Leave `plan`, `weights` and `teacher`
  // unchanged until then. With a teacher, also the divergences from it.
  TokenLogprobs logprobs(const PackedWeights& weights,
                         const ForwardPlan& plan,
                         const TokenTargets& targets,
                         float temperature,
                         bool want_entropy,
                         const TeacherRows* teacher = nullptr);

  // For a model with a score head: its value at each of plan.logit_rows, with grad. The same rules
  // apply.
  at::Tensor values(const PackedWeights& weights, const ForwardPlan& plan);

  // The load-balancing loss of a model with experts (moe_balance.hpp). From now on, each backward()
  // adds `weight` times its gradient, whatever the loss; 0, the initial value, turns it off.
  // balance_loss() is the loss of the last call, without the weight.
  void set_balance(double weight);
  // The row of this token in the input embedding gets no gradient (transformers' padding_idx); -1,
  // the initial value: every row gets its own.
  void fix_embedding_of(std::int32_t token);
  double balance_loss() const;

  std::uint64_t bytes() const;  // of kept activations

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe::model
