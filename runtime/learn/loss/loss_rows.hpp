// The table rows of the policy's loss: objectives and KL estimators. To add an objective, add a row
// here and a function in objective.cpp; if its ratio is new, also handle it in log_ratios_of of
// objective_stats.cpp. To add a KL estimator, give `of`, its form in the reward, and `formula`, its
// form in the loss, which is a function in objective.cpp. Help pages list the rows in this order.
// Functions that return at::Tensor exist only in code linked with LibTorch, so objective.cpp alone
// uses these rows as they are; choices.cpp keeps them without `formula` (facts_of).
#pragma once

#include "runtime/learn/choices.hpp"
#include "runtime/learn/loss/objectives.hpp"
#include "runtime/learn/settings.hpp"

#include <array>
#include <cmath>

namespace troupe::learn {

// The objectives' loss functions for one micro-batch (objective.cpp).
at::Tensor clipped_ratio(const LossTerms& terms);
at::Tensor clipped_sample_ratio(const LossTerms& terms);
at::Tensor weighted_logprob(const LossTerms& terms);
at::Tensor pair_comparison(const LossTerms& terms);

// The objectives' own detached token weights (off_policy.cpp).
void truncated_rho(SampleWeights& sample);
void tapered_product(SampleWeights& sample);

consteval auto objective_rows() {
  return std::array{
      Objective{.name = "ppo",
                .help = "clipped ratio of the policy to its start of the update",
                .clips = true,
                .formula = clipped_ratio},
      Objective{.name = "decoupled",
                .help = "ppo, each token weighed by rho up to algo.correction_max",
                .clips = true,
                .weigh = truncated_rho,
                .formula = clipped_ratio},
      Objective{.name = "a3po",
                .help = "decoupled, with an anchor between sampler and policy by age",
                .anchor = Anchor::kInterpolated,
                .clips = true,
                .weigh = truncated_rho,
                .formula = clipped_ratio},
      Objective{.name = "bypass",
                .help = "ppo with the ratio to the policy that sampled the token",
                .anchor = Anchor::kBehaviour,
                .clips = true,
                .behaviour_ratio = true,
                .formula = clipped_ratio},
      Objective{.name = "gspo",
                .help = "ppo with one ratio a sample, the geometric mean of its tokens'",
                .clips = true,
                .sample_ratio = true,
                .needs_group = true,
                .reducer = "sample_mean",
                .formula = clipped_sample_ratio},
      Objective{.name = "cispo",
                .help = "log-probs weighed by pi/mu up to algo.cispo_max",
                .behaviour_ratio = true,
                .bound = &AlgoSettings::cispo_max,
                .weigh = truncated_rho,
                .formula = weighted_logprob},
      Objective{.name = "reinforce",
                .help = "log-probs weighed by the advantage alone",
                .formula = weighted_logprob},
      Objective{.name = "topr",
                .help = "reinforce, bad samples weighed by the product of pi/mu up to 1",
                .behaviour_ratio = true,
                .weigh = tapered_product,
                .formula = weighted_logprob},
      Objective{.name = "online_dpo",
                .help = "dpo over the best and the worst sample of each prompt",
                .pairs = true,
                .needs_group = true,
                .formula = pair_comparison},
  };
}

// KL estimates from d = l - l_ref, with gradient (objective.cpp).
at::Tensor kl_loss_k2(const at::Tensor& d);
at::Tensor kl_loss_k3(const at::Tensor& d);

consteval auto kl_rows() {
  return std::array{
      KlEstimator{.name = "k1",
                  .help = "d; without an expected gradient, so for the reward alone",
                  .in_loss = false,
                  .of = [](double d) { return d; }},
      KlEstimator{.name = "k2",
                  .help = "d^2 / 2, whose gradient is that of KL(policy || reference)",
                  .of = [](double d) { return 0.5 * d * d; },
                  .formula = kl_loss_k2},
      KlEstimator{.name = "k3",
                  .help = "exp(-d) - 1 + d, whose gradient is that of KL(reference || policy)",
                  .of = [](double d) { return std::exp(-d) - 1 + d; },
                  .formula = kl_loss_k3},
  };
}

}  // namespace troupe::learn
