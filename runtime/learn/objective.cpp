// The loss as a graph of ATen operations.
#include "runtime/learn/objective.hpp"

#include "runtime/core/check.hpp"
#include "runtime/learn/tensors.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace troupe::learn {
namespace {

at::Tensor ratio(const at::Tensor& log_ratio) {
  return at::exp(at::clamp(log_ratio, -kLogRatioMax, kLogRatioMax));
}

at::Tensor clipped_objective(const AlgoSettings& algo,
                             const at::Tensor& r,
                             const at::Tensor& advantage) {
  const auto bounded = at::clamp(r, 1.0 - algo.eps_clip_low, 1.0 + algo.eps_clip_high);
  const auto objective = at::minimum(r * advantage, bounded * advantage);
  if (algo.dual_clip == 0) return objective;
  const auto floor = at::maximum(objective, algo.dual_clip * advantage);
  return at::where(advantage < 0, floor, objective);
}

// Every token gets its sample's mean.
at::Tensor mean_over_samples(const at::Tensor& values, const std::vector<TokenRange>& samples) {
  std::vector<at::Tensor> parts;
  for (const TokenRange& sample : samples) {
    const auto begin = static_cast<std::int64_t>(sample.begin);
    const auto end = static_cast<std::int64_t>(sample.end);
    parts.push_back(values.slice(0, begin, end).mean().expand({end - begin}));
  }
  return at::cat(parts);
}

at::Tensor token_objective(const AlgoSettings& algo,
                           const TokenBatch& batch,
                           const at::Tensor& l,
                           const at::Tensor& l_p) {
  const auto advantage = tensor_of(batch.advantage);
  if (algo.objective == ObjectiveKind::kGspo) {
    return clipped_objective(algo, ratio(mean_over_samples(l - l_p, sample_ranges(batch))),
                             advantage);
  }
  if (clips_ratio(algo.objective)) return clipped_objective(algo, ratio(l - l_p), advantage);
  return advantage * l;
}

at::Tensor dpo_loss(const AlgoSettings& algo, const TokenBatch& batch, const at::Tensor& l) {
  TROUPE_CHECK(batch.reference.size() == batch.size(), "one reference log-prob per token");
  const auto samples = sample_ranges(batch);
  TROUPE_CHECK(samples.size() % 2 == 0, "online DPO learns from pairs");
  const auto over_reference = l - tensor_of(batch.reference);
  const auto sum_of = [&](const TokenRange& sample) {
    return over_reference
        .slice(0, static_cast<std::int64_t>(sample.begin), static_cast<std::int64_t>(sample.end))
        .sum();
  };
  auto loss = over_reference.sum() * 0.0;
  for (std::size_t i = 0; i < samples.size(); i += 2) {
    if (batch.advantage[samples[i].begin] == 0) continue;
    const auto h = sum_of(samples[i]) - sum_of(samples[i + 1]);
    loss = loss - batch.pair_weight * at::log_sigmoid(algo.dpo_beta * h);
  }
  return loss;
}

at::Tensor kl_estimate(KlEstimator estimator, const at::Tensor& d) {
  TROUPE_CHECK(estimator != KlEstimator::kK1, "k1 has no expected gradient in the loss");
  if (estimator == KlEstimator::kK2) return 0.5 * d * d;
  return at::exp(-d) - 1.0 + d;
}

}  // namespace

bool clips_ratio(ObjectiveKind kind) {
  switch (kind) {
    case ObjectiveKind::kPpo:
    case ObjectiveKind::kDecoupled:
    case ObjectiveKind::kA3po:
    case ObjectiveKind::kBypass:
    case ObjectiveKind::kGspo:
      return true;
    case ObjectiveKind::kCispo:
    case ObjectiveKind::kReinforce:
    case ObjectiveKind::kTopr:
    case ObjectiveKind::kOnlineDpo:
      break;
  }
  return false;
}

at::Tensor policy_loss(const AlgoSettings& algo,
                       const TokenBatch& batch,
                       const at::Tensor& logprobs,
                       const at::Tensor& entropy) {
  const auto l = logprobs.to(at::kDouble);
  TROUPE_CHECK(l.dim() == 1 && l.numel() == static_cast<std::int64_t>(batch.size()),
               "one log-prob per token");
  const OffPolicy off = off_policy(algo, batch, values_of(l));
  const auto weight = tensor_of(batch.weight);
  at::Tensor loss;
  if (algo.objective == ObjectiveKind::kOnlineDpo) {
    loss = dpo_loss(algo, batch, l);
  } else {
    const auto objective = token_objective(algo, batch, l, tensor_of(off.anchor));
    loss = -(weight * tensor_of(off.weight) * objective).sum();
  }
  if (algo.kl_coef != 0 && algo.kl_in_loss) {
    TROUPE_CHECK(batch.reference.size() == batch.size(), "one reference log-prob per token");
    const auto kl = kl_estimate(algo.kl_estimator, l - tensor_of(batch.reference));
    loss = loss + algo.kl_coef * (weight * tensor_of(off.kl) * kl).sum();
  }
  if (algo.entropy_coef != 0) {
    TROUPE_CHECK(entropy.defined() && entropy.numel() == l.numel(), "one entropy per token");
    loss = loss - algo.entropy_coef * (weight * entropy.to(at::kDouble)).sum();
  }
  return loss;
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
