// The paired bootstrap.
#include "runtime/learn/evaluation.hpp"

#include <algorithm>
#include <string>

#include "runtime/core/rng.hpp"

namespace troupe::learn {

core::Result<Interval> paired_bootstrap(const std::vector<double>& before,
                                        const std::vector<double>& after, int resamples,
                                        std::uint64_t seed) {
  if (before.size() != after.size() || before.size() < 2 || resamples < 100) {
    return core::fail(core::ErrorCode::kInvalidArgument,
                      "a paired bootstrap needs the same problems twice (at least 2, got " +
                          std::to_string(before.size()) + " and " + std::to_string(after.size()) +
                          ") and at least 100 resamples");
  }
  const std::size_t count = before.size();
  std::vector<double> differences(count);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += differences[i] = after[i] - before[i];
  core::Rng rng(seed);
  std::vector<double> means(static_cast<std::size_t>(resamples));
  for (double& mean : means) {
    double total = 0;
    for (std::size_t i = 0; i < count; ++i) total += differences[rng.next_below(count)];
    mean = total / static_cast<double>(count);
  }
  std::sort(means.begin(), means.end());
  const auto at = [&](double quantile) {
    return means[static_cast<std::size_t>(quantile * static_cast<double>(resamples - 1))];
  };
  return Interval{sum / static_cast<double>(count), at(0.025), at(0.975)};
}

}  // namespace troupe::learn
