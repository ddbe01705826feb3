// The KL to the reference model where it is part of the reward, and the adaptive KL coefficient
// that follows a target. Plain C++, pure.
#pragma once

#include "runtime/learn/choices.hpp"
#include "runtime/learn/chosen.hpp"

#include <cstdint>

namespace troupe::learn {

// Bound of d in the reward.
inline constexpr double kRewardKlMax = 10.0;

// KL_t of one token, d = l_p - l_ref clamped to +-10.
// (The peer clamps the estimate instead, so its k3 of a large d differs.)
double reward_kl(Chosen<KlEstimator> estimator, double d);

// The coefficient after an update: coef * (1 + clip(K/target - 1, +-0.2) * samples/horizon), with K
// the mean over the samples of their summed KL (Ziegler et al. 2019, section 2.2). With a target
// of 0 the coefficient stays.
double steered_kl_coef(
    double coef, double kl_of_sample, double target, std::int64_t samples, double horizon);

}  // namespace troupe::learn
