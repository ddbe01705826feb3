// The split of the cores.
#include "apps/troupe/train/core_plan.hpp"

#include "apps/troupe/roles/role_factories.hpp"

#include <algorithm>

namespace troupe::app {

CorePlan plan_cores(const core::TrainConfig& config, std::uint32_t cores) {
  CorePlan plan;
  plan.cores = config.train.threads > 0 ? static_cast<std::uint32_t>(config.train.threads) : cores;
  plan.split = config.train.staleness_max > 0;
  plan.generators = static_cast<std::uint32_t>(config.rollout.generators);
  plan.reference = config.has_reference();
  plan.critic = has_critic(config);
  plan.reward_models = static_cast<std::uint32_t>(config.reward.model_name_or_path.size());
  const std::uint32_t generators = std::max(plan.generators, 1u);
  if (!plan.split) {
    for (const char* kind : {"policy", "critic", "generator", "reference", "reward"})
      plan.threads[kind] = plan.cores;
    return plan;
  }
  // Training takes longer than sampling on a processor, so with two cores the policy takes both and
  // the generators run in between.
  const std::uint32_t learning = plan.cores <= 2 ? plan.cores : std::max(1u, plan.cores / 2);
  const std::uint32_t rest = plan.cores > learning ? plan.cores - learning : 1;
  const std::uint32_t critic = std::max(1u, learning / 2);  // learns beside the policy
  const std::uint32_t policy = plan.critic && plan.cores > 2 ? learning - critic : learning;
  plan.threads = {{"policy", std::max(1u, policy)},
                  {"critic", critic},
                  {"generator", std::max(1u, rest / generators)},
                  {"reference", std::max(1u, rest / 2)},
                  {"reward", std::max(1u, rest / 2)}};
  return plan;
}

std::string CorePlan::text() const {
  std::string line = std::to_string(cores) + (cores == 1 ? " core: " : " cores: ");
  if (!split) {
    return line + "all to each role in turn" +
           (critic ? ", the critic learns before the policy" : "") + " (synchronous)";
  }
  line += "policy " + std::to_string(threads.at("policy"));
  if (critic) line += ", critic " + std::to_string(threads.at("critic"));
  if (generators > 0) {
    line += ", " + std::to_string(generators) +
            (generators == 1 ? " generator " : " generators with ") +
            std::to_string(threads.at("generator"));
  }
  if (reference) line += ", reference " + std::to_string(threads.at("reference"));
  if (reward_models > 0) {
    line += ", " + std::to_string(reward_models) +
            (reward_models == 1 ? " reward model with " : " reward models with ") +
            std::to_string(threads.at("reward"));
  }
  return line + " (threads; asynchronous: they run at once)";
}

}  // namespace troupe::app
