#include "runtime/learn/kl_control.hpp"

#include "runtime/learn/loss_rows.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::learn {

double kl_k1(double d) {
  return d;
}
double kl_k2(double d) {
  return 0.5 * d * d;
}
double kl_k3(double d) {
  return std::exp(-d) - 1 + d;
}

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
