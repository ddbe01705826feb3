#include "apps/session/roles/role_devices.hpp"

#include "apps/cli/placement.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "runtime/core/check.hpp"

#include <algorithm>

namespace troupe::app {

RoleDevice device_of(const config::TrainConfig& config, const std::string& kind) {
  if (kind == "policy") return {kind, "actor.device", config.actor.device};
  if (kind == "critic") return {kind, "critic.device", config.critic.device};
  if (kind == "generator") return {kind, "rollout.device", config.rollout.device};
  if (kind == "reference") return {kind, "ref.device", config.ref.device};
  TROUPE_CHECK(kind == "reward", "a kind of role that computes nowhere");
  return {kind, "reward.device", config.reward.device};
}

std::vector<RoleDevice> role_devices(const config::TrainConfig& config) {
  std::vector<RoleDevice> devices = {device_of(config, "policy")};
  if (has_critic(config)) devices.push_back(device_of(config, "critic"));
  devices.push_back(device_of(config, "generator"));
  if (has_reference(config)) devices.push_back(device_of(config, "reference"));
  if (!config.reward.model_name_or_path.empty()) devices.push_back(device_of(config, "reward"));
  return devices;
}

std::string devices_text(const config::TrainConfig& config) {
  std::string text;
  for (const RoleDevice& role : role_devices(config)) {
    if (!role.gpu()) continue;
    text += (text.empty() ? "" : ", ") + role.kind + " on " + role.device.text();
  }
  return text;
}

core::Result<void> check_role_devices(const config::TrainConfig& config) {
  const auto& here = config.cluster.local_roles;
  const bool one_process = config.cluster.transport == config::Transport::kLoopback;
  for (const RoleDevice& role : role_devices(config)) {
    if (!one_process && std::find(here.begin(), here.end(), role.kind) == here.end()) continue;
    TROUPE_TRY(check_device(role.text(), role.device));
  }
  return {};
}

}  // namespace troupe::app
