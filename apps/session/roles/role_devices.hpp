// Where the roles of a run compute, as its configuration says it. Pure.
#pragma once

#include "runtime/config/train_config.hpp"
#include "runtime/core/device_name.hpp"
#include "runtime/core/result.hpp"

#include <string>
#include <vector>

namespace troupe::app {

struct RoleDevice {
  std::string kind;         // of role
  std::string key;          // "actor.device"
  core::DeviceName device;  // its value

  std::string text() const { return key + " " + device.text(); }
  bool gpu() const { return device.gpu; }
};

// `kind`: one that computes: policy, critic, generator, reference, reward (a learned model).
RoleDevice device_of(const config::TrainConfig& config, const std::string& kind);

// Those of the kinds that this run has.
std::vector<RoleDevice> role_devices(const config::TrainConfig& config);

// "policy on cuda:0, generator on cuda:1"; of kinds that compute on a GPU, else empty.
std::string devices_text(const config::TrainConfig& config);

// Looks whether the GPUs of roles that run on this host are there, before anything starts. Errors:
// kResources, naming the key.
core::Result<void> check_role_devices(const config::TrainConfig& config);

}  // namespace troupe::app
