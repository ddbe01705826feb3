#include "runtime/model/moe_balance.hpp"

namespace troupe::model {

void LoadBalance::start(const MoeSpec& spec, double weight) {
  weight_ = weight;
  loss_ = 0;
  rows_ = 0;
  if (!on()) return;
  const auto experts = static_cast<std::size_t>(spec.experts);
  choices_.assign(experts, 0);
  p_.assign(experts, 0);
  slope_.assign(experts, 0);
}

void LoadBalance::add(core::Team team,
                      const MoeSpec& spec,
                      const Routing& routing,
                      std::int64_t rows) {
  const auto [begin, end] = team.share(spec.experts);
  const std::int64_t k = spec.experts_per_token;
  for (std::int64_t row = 0; row < rows && begin < end; ++row) {
    const float* p = routing.scores + row * routing.lds;
    for (std::int64_t e = begin; e < end; ++e)
      p_[static_cast<std::size_t>(e)] += static_cast<double>(p[e]);
    for (std::int64_t i = row * k; i < (row + 1) * k; ++i) {
      const std::int32_t e = routing.expert[i];
      if (e >= begin && e < end) ++choices_[static_cast<std::size_t>(e)];
    }
  }
}

void LoadBalance::finish() {
  if (!on() || rows_ == 0) return;
  const auto experts = static_cast<double>(p_.size());
  const auto all = static_cast<double>(rows_);
  for (std::size_t e = 0; e < p_.size(); ++e) {
    const double share = choices_[e] / all;
    loss_ += experts * share * (p_[e] / all);
    slope_[e] = static_cast<float>(weight_ * experts * share / all);
  }
}

}  // namespace troupe::model
