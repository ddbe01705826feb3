// The loss as a graph of ATen operations.
#include "runtime/learn/objective.hpp"

#include "runtime/core/check.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace troupe::learn {
namespace {

// A copy, so that the graph owns what it keeps for the backward pass.
at::Tensor tensor_of(std::span<const double> values) {
  auto tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kDouble);
  std::copy(values.begin(), values.end(), tensor.data_ptr<double>());
  return tensor;
}

std::vector<double> values_of(const at::Tensor& tensor) {
  const auto flat = tensor.to(at::kDouble).contiguous();
  const double* data = flat.const_data_ptr<double>();
  return {data, data + flat.numel()};
}

at::Tensor ratio(const at::Tensor& log_ratio) {
  return at::exp(at::clamp(log_ratio, -kLogRatioMax, kLogRatioMax));
}

at::Tensor clipped_objective(const AlgoSettings& algo,
                             const at::Tensor& r,
                             const at::Tensor& advantage) {
  const auto bounded = at::clamp(r, 1.0 - algo.eps_clip_low, 1.0 + algo.eps_clip_high);
  return at::minimum(r * advantage, bounded * advantage);
}

at::Tensor kl_estimate(KlEstimator estimator, const at::Tensor& d) {
  if (estimator == KlEstimator::kK2) return 0.5 * d * d;
  return at::exp(-d) - 1.0 + d;
}

}  // namespace

double token_weight(Reducer reducer,
                    std::int64_t mini_batches,
                    std::int64_t update_tokens,
                    std::int64_t update_samples,
                    std::int64_t sample_tokens) {
  const auto steps = static_cast<double>(mini_batches);
  if (reducer == Reducer::kTokenMean) return steps / static_cast<double>(update_tokens);
  return steps / (static_cast<double>(update_samples) * static_cast<double>(sample_tokens));
}

at::Tensor policy_loss(const AlgoSettings& algo,
                       const TokenBatch& batch,
                       const at::Tensor& logprobs,
                       const at::Tensor& entropy) {
  const auto l = logprobs.to(at::kDouble);
  TROUPE_CHECK(l.dim() == 1 && l.numel() == static_cast<std::int64_t>(batch.size()),
               "one log-prob per token");
  const auto l_mu = tensor_of(batch.behaviour);
  const auto l_p = batch.anchor.empty() ? l.detach() : tensor_of(batch.anchor);
  auto objective = clipped_objective(algo, ratio(l - l_p), tensor_of(batch.advantage));
  const bool decoupled = algo.objective == ObjectiveKind::kDecoupled;
  if (decoupled) objective = ratio(l_p - l_mu).clamp_max(algo.correction_max) * objective;
  auto per_token = -objective;
  if (algo.kl_coef != 0) {
    TROUPE_CHECK(batch.reference.size() == batch.size(), "one reference log-prob per token");
    auto kl = kl_estimate(algo.kl_estimator, l - tensor_of(batch.reference));
    if (decoupled) kl = ratio(l.detach() - l_mu) * kl;
    per_token = per_token + algo.kl_coef * kl;
  }
  if (algo.entropy_coef != 0) {
    TROUPE_CHECK(entropy.defined() && entropy.numel() == l.numel(), "one entropy per token");
    per_token = per_token - algo.entropy_coef * entropy.to(at::kDouble);
  }
  return (tensor_of(batch.weight) * per_token).sum();
}

LossGradient loss_and_gradient(const AlgoSettings& algo,
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

}  // namespace troupe::learn
