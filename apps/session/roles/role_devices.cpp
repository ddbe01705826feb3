#include "apps/session/roles/role_devices.hpp"

#include "actors/protocol/messages_node.hpp"
#include "apps/cli/placement.hpp"
#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/find_value.hpp"

#include <algorithm>
#include <charconv>
#include <map>

namespace troupe::session {

namespace {

// The number of "generator/3"; 0 without one.
std::size_t number_of(const std::string& name) {
  std::size_t number = 0;
  const auto slash = name.find('/');
  if (slash != name.npos) {
    std::from_chars(name.data() + slash + 1, name.data() + name.size(), number);
  }
  return number;
}

}  // namespace

RoleDevice device_of(const config::TrainConfig& config,
                     const std::string& kind,
                     const std::string& name) {
  const auto in_turn = [&](const char* key, const config::Devices& devices) -> RoleDevice {
    return {kind, key, devices[number_of(name) % devices.size()]};
  };
  if (kind == "policy") return in_turn("actor.device", config.actor.device);
  if (kind == "critic") return in_turn("critic.device", config.critic.device);
  if (kind == "generator") return in_turn("rollout.device", config.rollout.device);
  if (kind == "reference") return {kind, "ref.device", config.ref.device};
  if (kind == "teacher") return {kind, "teacher.device", config.teacher.device};
  if (kind == "environment" || kind == actors::kAttachedEnvironment)
    return {kind, "", config::Device()};  // computes nothing
  TROUPE_CHECK(kind == "reward", "a kind of role that computes nowhere");
  return {kind, "reward.device", config.reward.device};
}

std::vector<RoleDevice> role_devices(const config::TrainConfig& config) {
  std::vector<RoleDevice> devices;
  const auto add = [&](const char* kind, const char* key, const config::Devices& of_kind) {
    for (const config::Device& device : of_kind)
      devices.push_back({kind, key, device});
  };
  add("policy", "actor.device", config.actor.device);
  if (has_critic(config)) add("critic", "critic.device", config.critic.device);
  if (config.method == config::kPpo) add("generator", "rollout.device", config.rollout.device);
  if (has_reference(config)) devices.push_back(device_of(config, "reference"));
  if (config.method == config::kPpo && !config.teacher.model_name_or_path.empty())
    devices.push_back(device_of(config, "teacher"));
  const auto rewards = run_rewards(config);
  if (std::ranges::any_of(rewards, [](const RewardPart& part) { return !part.folder.empty(); }))
    devices.push_back(device_of(config, "reward"));
  return devices;
}

std::uint32_t generators_on_gpus(const config::TrainConfig& config, std::uint32_t generators) {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < generators; ++i)
    count += device_of(config, "generator", "generator/" + std::to_string(i)).gpu() ? 1 : 0;
  return count;
}

std::string devices_text(const config::TrainConfig& config) {
  const auto several = [](const config::Devices& devices) {
    return devices.size() > 1 && std::ranges::any_of(devices, &config::Device::gpu);
  };
  const std::map<std::string, bool> lists = {{"policy", several(config.actor.device)},
                                             {"critic", several(config.critic.device)},
                                             {"generator", several(config.rollout.device)}};
  std::string text, last;
  for (const RoleDevice& role : role_devices(config)) {
    const bool* const list = core::find_value(lists, role.kind);
    const bool in_turn = list != nullptr && *list;
    if (!role.gpu() && !in_turn) continue;
    if (in_turn && role.kind == last) {
      text += " and " + role.device.text();
    } else {
      const std::string who = !in_turn                   ? role.kind
                              : role.kind == "generator" ? "generators in turn"
                                                         : "ranks of the " + role.kind;
      text += (text.empty() ? "" : ", ") + who + " on " + role.device.text();
    }
    last = role.kind;
  }
  return text;
}

core::Result<void> check_role_devices(const config::TrainConfig& config) {
  const auto& here = config.cluster.local_roles;
  const bool one_process = config.cluster.transport == config::Transport::kLoopback;
  for (const RoleDevice& role : role_devices(config)) {
    if (!one_process && std::find(here.begin(), here.end(), role.kind) == here.end()) continue;
    TROUPE_TRY(cli::check_device(role.text(), role.device));
  }
  return {};
}

}  // namespace troupe::session
