#include "apps/session/core_plan.hpp"

#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/role_devices.hpp"
#include "apps/session/roles/run_settings.hpp"

#include <algorithm>

namespace troupe::session {

namespace {

// The ranks of a kind on this host.
std::uint32_t ranks_of(const config::TrainConfig& config, const std::string& kind) {
  const std::int64_t ranks = kind == "policy" ? config.actor.ranks : config.critic.ranks;
  const std::int64_t here = config.cluster.local_ranks;
  return static_cast<std::uint32_t>(here == 0 ? ranks : std::min(ranks, here));
}

// Each rank of a role gets an equal part of the cores that the role has.
void divide_among_ranks(const config::TrainConfig& config, bool critic, CorePlan& plan) {
  for (const std::string kind : {"policy", "critic"}) {
    const std::uint32_t ranks = ranks_of(config, kind);
    if (ranks < 2 || (kind == "critic" && !critic)) continue;
    std::uint32_t& threads = plan.threads[kind];
    if (!device_of(config, kind).gpu()) threads = std::max(1u, threads / ranks);
    plan.text += "; " + std::to_string(ranks) + " ranks of the " + kind + " with " +
                 std::to_string(threads) + (threads == 1 ? " thread each" : " threads each");
  }
}

}  // namespace

CorePlan plan_cores(const config::TrainConfig& config, std::uint32_t cores) {
  if (config.train.threads > 0) cores = static_cast<std::uint32_t>(config.train.threads);
  const bool reference = has_reference(config), critic = has_critic(config);
  // Teachers of folders; servers compute elsewhere.
  const auto teachers = static_cast<std::uint32_t>(config.teacher.model_name_or_path.size());
  const auto rewards = run_rewards(config);
  const auto reward_models = static_cast<std::uint32_t>(
      std::ranges::count_if(rewards, [](const RewardPart& part) { return !part.folder.empty(); }));
  const auto own_generators = static_cast<std::uint32_t>(config.rollout.generators);
  const std::uint32_t generators = std::max(own_generators, 1u);
  const auto gpu = [&](const char* kind) { return device_of(config, kind).gpu(); };
  const std::uint32_t on_gpus = generators_on_gpus(config, generators);
  const std::string gpus = devices_text(config), devices = gpus.empty() ? "" : "; " + gpus;
  CorePlan plan;
  plan.text = std::to_string(cores) + (cores == 1 ? " core: " : " cores: ");
  if (config.method != config::kPpo) {
    plan.threads["policy"] = gpu("policy") ? 1 : cores;
    plan.text += "all to the policy" + devices;
    divide_among_ranks(config, critic, plan);
    return plan;
  }
  if (config.train.staleness_max <= 0) {
    for (const char* kind :
         {"policy", "critic", "generator", "reference", "teacher", "reward", "environment"})
      plan.threads[kind] = gpu(kind) ? 1 : cores;
    if (on_gpus < generators) plan.threads["generator"] = cores;
    plan.text += "all to each role in turn";
    if (critic) plan.text += ", the critic learns before the policy";
    plan.text += " (synchronous)" + devices;
    divide_among_ranks(config, critic, plan);
    return plan;
  }
  // Each role on a GPU takes one core; the others share the rest.
  std::uint32_t taken = (gpu("policy") ? ranks_of(config, "policy") : 0) + on_gpus;
  if (critic && gpu("critic")) taken += ranks_of(config, "critic");
  if (reference && gpu("reference")) ++taken;
  if (gpu("teacher")) taken += teachers;
  if (gpu("reward")) taken += reward_models;
  const std::uint32_t left = cores > taken ? cores - taken : 1;
  const bool critic_learns = critic && !gpu("critic");
  const bool learners = !gpu("policy") || critic_learns;
  const bool others = on_gpus < generators || (reference && !gpu("reference")) ||
                      (teachers > 0 && !gpu("teacher")) || (reward_models > 0 && !gpu("reward"));
  // Training takes longer than sampling on a CPU, so with two cores the policy takes both and the
  // generators run in between.
  std::uint32_t learning = left <= 2 ? left : std::max(1u, left / 2);
  if (!learners) learning = 0;
  if (!others) learning = left;
  const std::uint32_t rest = left > learning ? left - learning : 1;
  const bool beside = critic_learns && !gpu("policy");  // the critic learns alongside the policy
  const std::uint32_t of_critic = std::max(1u, beside ? learning / 2 : learning);
  const std::uint32_t of_policy = beside && left > 2 ? learning - of_critic : learning;
  plan.threads = {{"policy", std::max(1u, of_policy)},
                  {"critic", of_critic},
                  {"generator", std::max(1u, rest / std::max(1u, generators - on_gpus))},
                  {"reference", std::max(1u, rest / 2)},
                  {"teacher", std::max(1u, rest / 2)},
                  {"reward", std::max(1u, rest / 2)},
                  {"environment", 1}};
  for (auto& [kind, threads] : plan.threads)
    if (kind == "generator" ? on_gpus == generators : gpu(kind.c_str())) threads = 1;
  const auto threads_of = [&](const char* kind) { return std::to_string(plan.threads.at(kind)); };
  plan.text += "policy " + threads_of("policy");
  if (critic) plan.text += ", critic " + threads_of("critic");
  if (own_generators > 0) {
    plan.text += ", " + std::to_string(own_generators) +
                 (own_generators == 1 ? " generator " : " generators with ") +
                 threads_of("generator");
  }
  if (reference) plan.text += ", reference " + threads_of("reference");
  if (teachers > 0) {
    plan.text += teachers == 1 ? ", teacher " : ", " + std::to_string(teachers) + " teachers with ";
    plan.text += threads_of("teacher");
  }
  if (reward_models > 0) {
    plan.text += ", " + std::to_string(reward_models) +
                 (reward_models == 1 ? " reward model with " : " reward models with ") +
                 threads_of("reward");
  }
  plan.text += " (threads; asynchronous: they run at once)" + devices;
  divide_among_ranks(config, critic, plan);
  return plan;
}

}  // namespace troupe::session
