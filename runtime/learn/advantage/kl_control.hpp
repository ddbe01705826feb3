// Estimates the KL to the reference model per token, for the reward and for steering, and steers
// the KL coefficient towards a target. Plain C++, pure.
#pragma once

#include "runtime/learn/choices.hpp"
#include "runtime/learn/chosen.hpp"

#include <cstdint>

namespace troupe::learn {

// Bound of |d| in reward_kl.
inline constexpr double kRewardKlMax = 10.0;

// The KL estimate of one token from d = l_p - l_ref, clamped to +-10.
// (OpenRLHF clamps the estimate instead, so its k3 of a large d differs.)
double reward_kl(Chosen<KlEstimator> estimator, double d);

// The coefficient after an update: coef * (1 + clip(K/target - 1, +-0.2) * samples/horizon), with
// K = kl_of_sample, the mean over the samples of their summed KL (Ziegler et al. 2019, section
// 2.2). `horizon` is in samples. With a target of 0 the coefficient stays.
double steered_kl_coef(
    double coef, double kl_of_sample, double target, std::int64_t samples, double horizon);

}  // namespace troupe::learn
