// The losses of policy and critic with their gradients, on plain numbers: for tests without a
// model.
#pragma once

#include "runtime/learn/loss/objective.hpp"
#include "runtime/learn/rl/value_loss.hpp"
#include "runtime/learn/torch/tensors.hpp"

#include <c10/core/GradMode.h>

#include <span>
#include <vector>

namespace troupe::learn {

struct LossGradient {
  double loss = 0;
  std::vector<double> logprobs;  // d loss / d l per token
  std::vector<double> entropy;   // d loss / d H per token; empty without entropies
};

inline LossGradient loss_and_gradient(const AlgoSettings& algo,
                                      const TokenBatch& batch,
                                      std::span<const double> logprobs,
                                      std::span<const double> entropy) {
  const c10::AutoGradMode with_grad(true);
  auto l = tensor_of(logprobs).requires_grad_(true);
  at::Tensor h;
  if (!entropy.empty()) h = tensor_of(entropy).requires_grad_(true);
  const auto loss = policy_loss(algo, batch, l, h);
  loss.backward();
  LossGradient result;
  result.loss = loss.item<double>();
  result.logprobs = values_of(l.grad());
  if (h.defined() && h.grad().defined()) result.entropy = values_of(h.grad());
  return result;
}

struct ValueGradient {
  double loss = 0;
  std::vector<double> values;  // d loss / d V per token
  ValueStats stats;
};

inline ValueGradient value_loss_and_gradient(double clip,
                                             const ValueBatch& batch,
                                             std::span<const double> values) {
  const c10::AutoGradMode with_grad(true);
  auto v = tensor_of(values).requires_grad_(true);
  ValueGradient result;
  const auto loss = value_loss(clip, batch, v, result.stats);
  loss.backward();
  result.loss = loss.item<double>();
  result.values = values_of(v.grad());
  return result;
}

}  // namespace troupe::learn
