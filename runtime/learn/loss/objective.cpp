#include "runtime/learn/loss/objective.hpp"

#include "runtime/core/check.hpp"
#include "runtime/learn/loss/loss_rows.hpp"
#include "runtime/learn/torch/tensors.hpp"

namespace troupe::learn {
namespace {

// The rows with their `formula`, which calls LibTorch; Objective::all() has them without it.
constexpr auto kObjectiveFormulas = objective_rows();
constexpr auto kKlFormulas = kl_rows();

at::Tensor ratio(const at::Tensor& log_ratio) {
  return at::exp(at::clamp(log_ratio, -kLogRatioMax, kLogRatioMax));
}

at::Tensor clipped_objective(const AlgoSettings& algo,
                             const at::Tensor& r,
                             const at::Tensor& advantage) {
  const auto bounded = at::clamp(r, 1.0 - algo.eps_clip_low(), 1.0 + algo.eps_clip_high());
  const auto objective = at::minimum(r * advantage, bounded * advantage);
  if (algo.dual_clip == 0) return objective;
  const auto floor = at::maximum(objective, algo.dual_clip * advantage);
  return at::where(advantage < 0, floor, objective);
}

// Replaces each token's value by the mean over its sample.
at::Tensor mean_over_samples(const at::Tensor& values, const std::vector<TokenRange>& samples) {
  std::vector<at::Tensor> parts;
  for (const TokenRange& sample : samples) {
    const auto begin = static_cast<std::int64_t>(sample.begin);
    const auto end = static_cast<std::int64_t>(sample.end);
    parts.push_back(values.slice(0, begin, end).mean().expand({end - begin}));
  }
  return at::cat(parts);
}

// -sum of weight * objective.
at::Tensor weighted_sum(const LossTerms& terms, const at::Tensor& objective) {
  return -(terms.weight * objective).sum();
}

}  // namespace

at::Tensor clipped_ratio(const LossTerms& t) {
  return weighted_sum(t,
                      clipped_objective(t.algo, ratio(t.l - t.l_p), tensor_of(t.batch.advantage)));
}

at::Tensor clipped_sample_ratio(const LossTerms& t) {
  const auto r = ratio(mean_over_samples(t.l - t.l_p, sample_ranges(t.batch)));
  return weighted_sum(t, clipped_objective(t.algo, r, tensor_of(t.batch.advantage)));
}

at::Tensor weighted_logprob(const LossTerms& t) {
  return weighted_sum(t, tensor_of(t.batch.advantage) * t.l);
}

// Adds pair_weight * -log sigmoid(dpo_beta * h) for each pair whose advantage is not 0, with h =
// (sum of l - l_ref over the pair's first, better sample) - (the same over its second).
at::Tensor pair_comparison(const LossTerms& t) {
  const TokenBatch& batch = t.batch;
  TROUPE_CHECK(batch.reference.size() == batch.size(), "one reference log-prob per token");
  const auto samples = sample_ranges(batch);
  TROUPE_CHECK(samples.size() % 2 == 0, "online DPO learns from pairs");
  const auto over_reference = t.l - tensor_of(batch.reference);
  const auto sum_over = [&](const TokenRange& sample) {
    return over_reference
        .slice(0, static_cast<std::int64_t>(sample.begin), static_cast<std::int64_t>(sample.end))
        .sum();
  };
  auto loss = over_reference.sum() * 0.0;
  for (std::size_t i = 0; i < samples.size(); i += 2) {
    if (batch.advantage[samples[i].begin] == 0) continue;
    const auto h = sum_over(samples[i]) - sum_over(samples[i + 1]);
    loss = loss - batch.pair_weight * at::log_sigmoid(t.algo.dpo_beta * h);
  }
  return loss;
}

at::Tensor kl_loss_k2(const at::Tensor& d) {
  return 0.5 * d * d;
}

at::Tensor kl_loss_k3(const at::Tensor& d) {
  return at::exp(-d) - 1.0 + d;
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
  const auto l_p = tensor_of(off.anchor), weighed = weight * tensor_of(off.weight);
  at::Tensor loss =
      kObjectiveFormulas[algo.objective.index()].formula({algo, batch, l, l_p, weighed});
  if (algo.kl.init_coef != 0 && algo.kl.use_loss) {
    TROUPE_CHECK(batch.reference.size() == batch.size(), "one reference log-prob per token");
    const auto formula = kKlFormulas[algo.kl.estimator.index()].formula;
    TROUPE_CHECK(formula != nullptr, "an estimator without a gradient in the loss");
    const auto kl = formula(l - tensor_of(batch.reference));
    loss = loss + algo.kl.init_coef * (weight * tensor_of(off.kl) * kl).sum();
  }
  if (algo.entropy_coef != 0) {
    TROUPE_CHECK(entropy.defined() && entropy.numel() == l.numel(), "one entropy per token");
    loss = loss - algo.entropy_coef * (weight * entropy.to(at::kDouble)).sum();
  }
  return loss;
}

}  // namespace troupe::learn
