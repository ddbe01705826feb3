#include "apps/session/roles/role_devices.hpp"

#include "apps/cli/placement.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "runtime/core/check.hpp"

#include <algorithm>
#include <charconv>

namespace troupe::app {

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
  if (kind == "policy") return {kind, "actor.device", config.actor.device};
  if (kind == "critic") return {kind, "critic.device", config.critic.device};
  if (kind == "generator") {
    const auto& devices = config.rollout.device;
    return {kind, "rollout.device", devices[number_of(name) % devices.size()]};
  }
  if (kind == "reference") return {kind, "ref.device", config.ref.device};
  TROUPE_CHECK(kind == "reward", "a kind of role that computes nowhere");
  return {kind, "reward.device", config.reward.device};
}

std::vector<RoleDevice> role_devices(const config::TrainConfig& config) {
  std::vector<RoleDevice> devices = {device_of(config, "policy")};
  if (has_critic(config)) devices.push_back(device_of(config, "critic"));
  for (const config::Device& device : config.rollout.device)
    devices.push_back({"generator", "rollout.device", device});
  if (has_reference(config)) devices.push_back(device_of(config, "reference"));
  if (!config.reward.model_name_or_path.empty()) devices.push_back(device_of(config, "reward"));
  return devices;
}

std::uint32_t generators_on_gpus(const config::TrainConfig& config, std::uint32_t generators) {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < generators; ++i)
    count += device_of(config, "generator", "generator/" + std::to_string(i)).gpu() ? 1 : 0;
  return count;
}

std::string devices_text(const config::TrainConfig& config) {
  const auto& engines = config.rollout.device;
  const bool several = engines.size() > 1 && std::ranges::any_of(engines, &config::Device::gpu);
  std::string text, last;
  for (const RoleDevice& role : role_devices(config)) {
    const bool in_turn = several && role.kind == "generator";
    if (!role.gpu() && !in_turn) continue;
    if (in_turn && role.kind == last) {
      text += " and " + role.device.text();
    } else {
      text += (text.empty() ? "" : ", ") + role.kind + (in_turn ? "s in turn on " : " on ") +
              role.device.text();
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
    TROUPE_TRY(check_device(role.text(), role.device));
  }
  return {};
}

}  // namespace troupe::app
