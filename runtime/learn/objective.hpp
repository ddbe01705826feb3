// The loss of one micro-batch: policy objective, KL to the reference and entropy over the tokens
// that the policy chose (docs/algorithms.md, "Policy objectives"). Computed in f64 on ATen tensors
// with autograd; the weights of the reducer make the losses of an update's micro-batches add up to
// the mean over the update. Stateless; runs on the trainer's thread.
#pragma once

#include "runtime/learn/off_policy.hpp"
#include "runtime/learn/settings.hpp"
#include "runtime/learn/token_batch.hpp"

#include <span>
#include <vector>

namespace at {
class Tensor;
}

namespace troupe::learn {

// Whether the objective clips r, so that the clip can take a token's gradient.
bool clips_ratio(ObjectiveKind kind);

// The loss, sum over tokens of weight * (-w * objective + beta * KL * w_kl - c_H * H), a scalar in
// f64, with the detached w and w_kl of off_policy.hpp and r = exp(clamp(l - l_p, +-20)):
//   kPpo, kDecoupled, kA3po, kBypass   o = min(r A, clip(r, 1 - e_low, 1 + e_high) A), and where
//                                      A < 0 with dual_clip c: max(o, c A)
//   kGspo        the same with r = exp(mean over the sample of l - l_p)
//   kCispo, kReinforce, kTopr          A l
//   kOnlineDpo   log s(dpo_beta * h), h = (sum l - l_ref of the pair's first sample) - (same of its
//                second), times pair_weight for each pair whose A is not 0
//   KL           k2 = d^2/2 or k3 = exp(-d) - 1 + d, d = l - l_ref without a clamp
// `logprobs` [tokens] f32 or f64; `entropy` [tokens], or undefined when entropy_coef is 0.
at::Tensor policy_loss(const AlgoSettings& algo,
                       const TokenBatch& batch,
                       const at::Tensor& logprobs,
                       const at::Tensor& entropy);

struct LossGradient {
  double loss = 0;
  std::vector<double> logprobs;  // d loss / d l per token
  std::vector<double> entropy;   // d loss / d H per token; empty without entropies
};

// The same on plain numbers, for callers without a graph.
LossGradient loss_and_gradient(const AlgoSettings& algo,
                               const TokenBatch& batch,
                               std::span<const double> logprobs,
                               std::span<const double> entropy);

}  // namespace troupe::learn
