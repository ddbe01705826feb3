#include "apps/session/core_plan.hpp"

#include "apps/session/roles/role_devices.hpp"
#include "apps/session/roles/run_settings.hpp"

#include <algorithm>

namespace troupe::app {

CorePlan plan_cores(const config::TrainConfig& config, std::uint32_t cores) {
  CorePlan plan;
  plan.cores = config.train.threads > 0 ? static_cast<std::uint32_t>(config.train.threads) : cores;
  plan.split = config.train.staleness_max > 0;
  plan.generators = static_cast<std::uint32_t>(config.rollout.generators);
  plan.reference = has_reference(config);
  plan.critic = has_critic(config);
  plan.reward_models = static_cast<std::uint32_t>(config.reward.model_name_or_path.size());
  plan.gpus = devices_text(config);
  const std::uint32_t generators = std::max(plan.generators, 1u);
  const auto gpu = [&](const char* kind) { return device_of(config, kind).gpu(); };
  if (!plan.split) {
    for (const char* kind : {"policy", "critic", "generator", "reference", "reward"})
      plan.threads[kind] = gpu(kind) ? 1 : plan.cores;
    return plan;
  }
  // Roles of GPUs take a core each, the others share what is left.
  std::uint32_t taken = (gpu("policy") ? 1 : 0) + (gpu("generator") ? generators : 0);
  if (plan.critic && gpu("critic")) ++taken;
  if (plan.reference && gpu("reference")) ++taken;
  if (gpu("reward")) taken += plan.reward_models;
  const std::uint32_t left = plan.cores > taken ? plan.cores - taken : 1;
  const bool critic_learns = plan.critic && !gpu("critic");
  const bool learners = !gpu("policy") || critic_learns;
  const bool others = !gpu("generator") || (plan.reference && !gpu("reference")) ||
                      (plan.reward_models > 0 && !gpu("reward"));
  // Training takes longer than sampling on a processor, so with two cores the policy takes both and
  // the generators run in between.
  std::uint32_t learning = left <= 2 ? left : std::max(1u, left / 2);
  if (!learners) learning = 0;
  if (!others) learning = left;
  const std::uint32_t rest = left > learning ? left - learning : 1;
  const bool beside = critic_learns && !gpu("policy");  // the critic learns beside the policy
  const std::uint32_t critic = std::max(1u, beside ? learning / 2 : learning);
  const std::uint32_t policy = beside && left > 2 ? learning - critic : learning;
  plan.threads = {{"policy", std::max(1u, policy)},
                  {"critic", critic},
                  {"generator", std::max(1u, rest / generators)},
                  {"reference", std::max(1u, rest / 2)},
                  {"reward", std::max(1u, rest / 2)}};
  for (auto& [kind, threads] : plan.threads)
    if (gpu(kind.c_str())) threads = 1;
  return plan;
}

std::string CorePlan::text() const {
  std::string line = std::to_string(cores) + (cores == 1 ? " core: " : " cores: ");
  const std::string devices = gpus.empty() ? "" : "; " + gpus;
  if (!split) {
    return line + "all to each role in turn" +
           (critic ? ", the critic learns before the policy" : "") + " (synchronous)" + devices;
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
  return line + " (threads; asynchronous: they run at once)" + devices;
}

}  // namespace troupe::app
