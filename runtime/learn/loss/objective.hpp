// The loss of one micro-batch: policy objective, KL to the reference and entropy over the tokens
// that the policy chose (docs/algorithms.md, "Policy objectives"). Computed in f64 on ATen tensors
// with autograd; the weights of the reducer make the losses of an update's micro-batches add up to
// the mean over the update. Stateless; runs on the trainer's thread.
#pragma once

#include "runtime/learn/loss/off_policy.hpp"
#include "runtime/learn/loss/token_batch.hpp"
#include "runtime/learn/settings.hpp"

namespace at {
class Tensor;
}

namespace troupe::learn {

// Inputs of the objectives' loss functions; the tensors have one entry per token.
struct LossTerms {
  const AlgoSettings& algo;
  const TokenBatch& batch;
  const at::Tensor& l;       // with the gradient
  const at::Tensor& l_p;     // anchor
  const at::Tensor& weight;  // the reducer's weight times the detached off-policy weight w
};

// Returns the loss, a scalar in f64: the objective's formula (for most the sum over tokens of
// -weight * w * objective), plus the sums over tokens of weight * beta * w_kl * KL and of
// -weight * c_H * H. w and w_kl are detached (off_policy.hpp); d = l - l_ref of the KL is not
// clamped. `logprobs` [tokens] f32 or f64; `entropy` [tokens], or undefined if entropy_coef is 0.
at::Tensor policy_loss(const AlgoSettings& algo,
                       const TokenBatch& batch,
                       const at::Tensor& logprobs,
                       const at::Tensor& entropy);

}  // namespace troupe::learn
