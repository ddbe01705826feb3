// The last part of a training pass: the final norm, and the head on its rows, whether of
// log-probs or of values. Keeps what the backward pass needs. Owned by a TrainTape; the forward
// steps come in the order norm, head, the backward steps the other way round.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/head_grad.hpp"
#include "runtime/model/value_head.hpp"

#include <cstdint>
#include <vector>

namespace troupe::model {

class WeightsGate;

class TrainHead {
 public:
  // Null `grads`: forward only. All must outlive this object.
  TrainHead(core::TeamRunner& team, const ParamStore& master, ParamStore* grads)
      : team_(team), master_(master), grads_(grads) {}

  // Starts a micro-batch. `logits_max`: how many floats of logits may be kept. `gate`: brings the
  // weights of this part; may be null.
  void begin(const PackedWeights& weights,
             const ForwardPlan& plan,
             WeightsGate* gate,
             std::int64_t logits_max);

  void forward_norm(const float* hidden);
  // One of these, depending on the model's head. With a teacher the divergence from it is measured
  // too.
  void forward(const TokenTargets& targets,
               float temperature,
               bool want_entropy,
               const TeacherRows* teacher = nullptr);
  void forward_values();

  // Results of the forward steps: the head's input, in the team's memory; on the host, log-probs,
  // entropies and divergences by target, empty when not wanted, and values by logit row.
  float* in() { return in_.data(); }  // [logit rows, hidden]
  const std::vector<float>& logprobs() const { return logprobs_; }
  const std::vector<float>& entropies() const { return entropies_; }
  const std::vector<float>& divergences() const { return divergences_; }
  const std::vector<float>& values() const { return values_; }

  // Fill din() from the gradients of log-probs, entropies and divergences, on the host, by target,
  // null for none; or from those of values.
  void backward(const float* dlogprobs,
                const float* dentropies,
                const float* ddivergences = nullptr);
  void backward_values(const float* dvalues);
  float* din() { return din_.data(); }  // [logit rows, hidden]
  // Fills dx [rows, hidden], the gradient of the last layer's output.
  void backward_norm(float* dx);

 private:
  HeadCall call() { return {*weights_, in_.data(), rows(), head_}; }
  std::int64_t rows() const { return static_cast<std::int64_t>(plan_->logit_rows.size()); }
  // The final norm and the head are one part of the model, computed in two steps.
  void open(bool backward);
  void close(bool backward);

  core::TeamRunner& team_;
  const ParamStore& master_;
  ParamStore* const grads_;
  const PackedWeights* weights_ = nullptr;
  const ForwardPlan* plan_ = nullptr;
  WeightsGate* gate_ = nullptr;
  std::int64_t logits_max_ = 0;
  TokenTargets targets_;
  core::Buffer<float> last_in_, last_inv_rms_, in_;  // the final norm's logit rows
  HeadScratch head_;
  ValueScratch value_head_;
  std::vector<float> logprobs_, entropies_, divergences_, values_;
  core::Buffer<float> din_, dlast_;
};

}  // namespace troupe::model
