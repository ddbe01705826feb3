// The split of the cores.
#include "apps/troupe/train/core_plan.hpp"

#include <algorithm>

namespace troupe::app {

CorePlan plan_cores(const core::TrainConfig& config, std::uint32_t cores) {
  CorePlan plan;
  plan.cores = config.train.threads > 0 ? static_cast<std::uint32_t>(config.train.threads) : cores;
  plan.split = config.train.staleness_max > 0;
  const auto generators =
      static_cast<std::uint32_t>(std::max<std::int64_t>(config.rollout.generators, 1));
  if (!plan.split) {
    plan.threads = {{"policy", plan.cores}, {"generator", plan.cores}, {"reference", plan.cores}};
    return plan;
  }
  // Training takes longer than sampling on a processor, so with two cores the policy takes both and the
  // generators run in between.
  const std::uint32_t policy = plan.cores <= 2 ? plan.cores : std::max(1u, plan.cores / 2);
  const std::uint32_t rest = plan.cores > policy ? plan.cores - policy : 1;
  plan.threads = {{"policy", policy},
                  {"generator", std::max(1u, rest / generators)},
                  {"reference", std::max(1u, rest / 2)}};
  return plan;
}

std::string CorePlan::text() const {
  std::string line = std::to_string(cores) + (cores == 1 ? " core: " : " cores: ");
  if (!split) return line + "all to each role in turn (synchronous)";
  bool first = true;
  for (const auto& [kind, count] : threads) {
    line += (first ? "" : ", ") + kind + " " + std::to_string(count);
    first = false;
  }
  return line + " (asynchronous)";
}

}  // namespace troupe::app
