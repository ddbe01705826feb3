#include "runtime/learn/weight_average.hpp"

namespace troupe::learn {

WeightAverage::WeightAverage(const model::ParamStore& start, double beta)
    : beta_(static_cast<float>(beta)), average_(start.to(core::host_memory())) {}

void WeightAverage::add(core::TeamRunner& team, const model::ParamStore& weights) {
  const float keep = beta_, take = 1.0f - beta_;
  float* to = average_.data();
  const model::HostCopy host(weights);
  const float* from = host->data();
  team.run([&](core::Team member) {
    const auto [begin, end] = member.share(average_.size(), 64);
    for (std::int64_t i = begin; i < end; ++i)
      to[i] = keep * to[i] + take * from[i];
  });
}

}  // namespace troupe::learn
