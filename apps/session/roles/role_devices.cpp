#include "apps/session/roles/role_devices.hpp"

#include "actors/protocol/messages_node.hpp"
#include "apps/cli/placement.hpp"
#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "runtime/core/check.hpp"

#include <algorithm>
#include <charconv>

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

// The key that lists the devices of a kind, of which each role takes one in turn; null for others.
const char* key_of_list(const std::string& kind) {
  if (kind == "policy") return "actor.device";
  if (kind == "critic") return "critic.device";
  return kind == "generator" ? "rollout.device" : nullptr;
}

}  // namespace

RoleDevice device_of(const config::TrainConfig& config,
                     const std::string& kind,
                     const std::string& name) {
  if (const char* key = key_of_list(kind)) {
    const auto& devices = config::value_at<config::Devices>(config, key);
    return {kind, key, devices[number_of(name) % devices.size()]};
  }
  if (kind == "reference") return {kind, "ref.device", config.ref.device};
  if (kind == "teacher") return {kind, "teacher.device", config.teacher.device};
  if (kind == "environment" || kind == actors::kAttachedEnvironment)
    return {kind, "", config::Device()};  // computes nothing
  TROUPE_CHECK(kind == "reward", "a kind of role that computes nowhere");
  return {kind, "reward.device", config.reward.device};
}

std::vector<RoleDevice> role_devices(const config::TrainConfig& config) {
  std::vector<RoleDevice> devices;
  const auto add = [&](const char* kind) {
    const char* const key = key_of_list(kind);
    for (const config::Device& device : config::value_at<config::Devices>(config, key))
      devices.push_back({kind, key, device});
  };
  add("policy");
  if (has_critic(config)) add("critic");
  if (config.method == config::kPpo) add("generator");
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
  const auto several = [&](const char* key) {
    if (key == nullptr) return false;
    const auto& devices = config::value_at<config::Devices>(config, key);
    return devices.size() > 1 && std::ranges::any_of(devices, &config::Device::gpu);
  };
  std::string text, last;
  for (const RoleDevice& role : role_devices(config)) {
    const bool in_turn = several(key_of_list(role.kind));
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
  for (const RoleDevice& role : role_devices(config)) {
    if (!runs_here(config, role.kind)) continue;
    TROUPE_TRY(cli::check_device(role.text(), role.device));
  }
  return {};
}

}  // namespace troupe::session
