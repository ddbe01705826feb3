// The loss of one micro-batch: policy objective, KL to the reference and entropy over the tokens
// that the policy chose (docs/algorithms.md, "Policy objectives"). Computed in f64 on ATen tensors
// with autograd; the weights of the reducer make the losses of an update's micro-batches add up to
// the mean over the update. Stateless; runs on the trainer's thread.
#pragma once

#include "runtime/learn/settings.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace at {
class Tensor;
}

namespace troupe::learn {

// Bound of a log-ratio before it goes through exp.
inline constexpr double kLogRatioMax = 20.0;

// What is known about the tokens of one micro-batch besides their current log-probs l; one entry
// per token, in the order of the log-probs.
struct TokenBatch {
  std::vector<double> advantage;  // A
  std::vector<double> weight;     // share of the token in the update's mean, from `token_weight`
  std::vector<double> behaviour;  // l_mu
  std::vector<double> anchor;     // l_p; empty means l_p = sg(l)
  std::vector<double> reference;  // l_ref; empty when kl_coef is 0

  std::size_t size() const { return advantage.size(); }
};

// The reducer. An update of N policy tokens and S samples (all ranks, all micro-batches) is learnt
// from in M mini-batches, one optimiser step each; a token whose sample has T tokens weighs
//   kTokenMean   M / N          kSampleMean   M / (S T)
// so that all tokens (or samples) of the update count the same, and a step has the scale of a mean.
double token_weight(Reducer reducer,
                    std::int64_t mini_batches,
                    std::int64_t update_tokens,
                    std::int64_t update_samples,
                    std::int64_t sample_tokens);

// The loss, sum over tokens of weight * (-objective + beta * KL - c_H * H), a scalar in f64:
//   r = exp(clamp(l - l_p, +-20)), rho = exp(clamp(l_p - l_mu, +-20))
//   kPpo        min(r A, clip(r, 1 - e_low, 1 + e_high) A)
//   kDecoupled  sg(min(rho, C)) * ppo(r)
//   KL          k2 = d^2/2 or k3 = exp(-d) - 1 + d, d = l - l_ref without a clamp; times
//               sg(exp(clamp(l - l_mu, +-20))) with kDecoupled, whose tokens may be off-policy
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
