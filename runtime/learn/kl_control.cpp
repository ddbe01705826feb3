// Estimators and the adaptive coefficient.
#include "runtime/learn/kl_control.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::learn {

double reward_kl(KlEstimator estimator, double d) {
  d = std::clamp(d, -kRewardKlMax, kRewardKlMax);
  switch (estimator) {
    case KlEstimator::kK1:
      return d;
    case KlEstimator::kK2:
      return 0.5 * d * d;
    case KlEstimator::kK3:
      break;
  }
  return std::exp(-d) - 1 + d;
}

void KlController::update(double kl_of_sample,
                          double target,
                          std::int64_t samples,
                          double horizon) {
  if (target <= 0) return;
  const double error = std::clamp(kl_of_sample / target - 1, -0.2, 0.2);
  coef *= 1 + error * static_cast<double>(samples) / horizon;
}

}  // namespace troupe::learn
