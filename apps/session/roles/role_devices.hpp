// Reads from a run's configuration on which device each role computes. Pure, except that
// check_role_devices looks for the GPUs.
#pragma once

#include "runtime/config/train_config.hpp"
#include "runtime/core/device_name.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::session {

struct RoleDevice {
  std::string kind;         // of role: "policy"
  std::string key;          // "actor.device"
  core::DeviceName device;  // its value

  std::string text() const { return key + " " + device.text(); }
  bool gpu() const { return device.gpu; }
};

// `kind`: policy, critic, generator, reference, teacher or reward (of a learned model). `name`: of
// the role; the number in "generator/3" or "policy/1" chooses among several devices; without a name
// it is the first.
RoleDevice device_of(const config::TrainConfig& config,
                     const std::string& kind,
                     const std::string& name = "");

// The devices of the kinds of roles that this run has: all that policy, critic or generators name.
std::vector<RoleDevice> role_devices(const config::TrainConfig& config);

// How many of the first `generators` generators are on a GPU.
std::uint32_t generators_on_gpus(const config::TrainConfig& config, std::uint32_t generators);

// "policy on cuda:0, generators in turn on cuda:1 and cuda:2", "ranks of the policy on cuda:0 and
// cuda:1": the kinds on a GPU, and all devices of a list if one is a GPU; empty when there are
// none.
std::string devices_text(const config::TrainConfig& config);

// Checks before anything starts that the GPUs of the roles on this host exist. Error kResources,
// naming the key.
core::Result<void> check_role_devices(const config::TrainConfig& config);

}  // namespace troupe::session
