// The split of the cores.
#include "apps/troupe/train/core_plan.hpp"

#include <algorithm>

namespace troupe::app {

CorePlan plan_cores(const core::TrainConfig& config, std::uint32_t cores) {
  CorePlan plan;
  plan.cores = config.train.threads > 0 ? static_cast<std::uint32_t>(config.train.threads) : cores;
  plan.split = config.train.staleness_max > 0;
  plan.generators = static_cast<std::uint32_t>(config.rollout.generators);
  plan.reference = config.algo.kl.init_coef != 0;
  const std::uint32_t generators = std::max(plan.generators, 1u);
  if (!plan.split) {
    plan.threads = {{"policy", plan.cores}, {"generator", plan.cores}, {"reference", plan.cores}};
    return plan;
  }
  // Training takes longer than sampling on a processor, so with two cores the policy takes both and
  // the generators run in between.
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
  line += "policy " + std::to_string(threads.at("policy"));
  if (generators > 0) {
    line += ", " + std::to_string(generators) +
            (generators == 1 ? " generator " : " generators with ") +
            std::to_string(threads.at("generator"));
  }
  if (reference) line += ", reference " + std::to_string(threads.at("reference"));
  return line + " (threads; asynchronous: they run at once)";
}

}  // namespace troupe::app
