// Where a command or a role computes: the one place that makes a team from a device's name.
// Stateless; any thread. A GPU's team is used by one thread at a time and outlives what took memory
// from it.
#pragma once

#include "runtime/core/device_name.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace troupe::app {

inline constexpr const char* kDeviceHelp = "where to compute: cpu, cuda or cuda:N (GPU N)";

// The values of --device and --threads.
struct Placement {
  std::string device = "cpu";
  std::int64_t threads = 0;  // of the CPU; 0: all usable cores
};

// `what` stands before messages: a flag or key, with its value. Errors: kConfig for a name that is
// none; kResources when there is no such GPU, saying what is missing and what helps.
core::Result<std::unique_ptr<core::TeamRunner>> make_team(const std::string& what,
                                                          const Placement& placement);

// The same, with --device as the flag that messages name; also flushes denormals in the calling
// thread.
core::Result<std::unique_ptr<core::TeamRunner>> make_team(const Placement& placement);

// Whether `make_team` would find the device, without opening it. The same errors.
core::Result<void> check_device(const std::string& what, const core::DeviceName& device);

// The teams of roles that compute on one thread, one per device. Owned by the owner of the thread,
// used on it.
class Teams {
 public:
  // The device's team, made at the first call, which sets `threads`. Valid as long as this object.
  core::Result<core::TeamRunner*> get(const std::string& what, const Placement& placement);

 private:
  std::map<std::string, std::unique_ptr<core::TeamRunner>> made_;  // by device
};

}  // namespace troupe::app
