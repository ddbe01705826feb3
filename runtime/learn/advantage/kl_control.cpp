#include "runtime/learn/advantage/kl_control.hpp"

#include <algorithm>

namespace troupe::learn {

double reward_kl(Chosen<KlEstimator> estimator, double d) {
  return estimator->of(std::clamp(d, -kRewardKlMax, kRewardKlMax));
}

double steered_kl_coef(
    double coef, double kl_of_sample, double target, std::int64_t samples, double horizon) {
  if (target <= 0) return coef;
  const double error = std::clamp(kl_of_sample / target - 1, -0.2, 0.2);
  return coef * (1 + error * static_cast<double>(samples) / horizon);
}

}  // namespace troupe::learn
