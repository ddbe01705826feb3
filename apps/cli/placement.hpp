// Where a command or a role computes: makes a team (CPU threads or a GPU) from a device's name. The
// functions have no state; call them on any thread. One thread at a time uses a GPU's team, which
// outlives whatever took memory from it.
#pragma once

#include "runtime/core/device_name.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace troupe::cli {

inline constexpr const char* kDeviceHelp = "where to compute: cpu, cuda or cuda:N (GPU N)";

// The values of --device and --threads.
struct Placement {
  std::string device = "cpu";
  std::int64_t threads = 0;  // of the CPU; 0: all usable cores
};

// `what`: the flag or key with its value, which begins error messages. Errors: kConfig when
// placement.device is no device name; kResources when there is no such GPU, with what is missing.
core::Result<std::unique_ptr<core::TeamRunner>> make_team(const std::string& what,
                                                          const Placement& placement);

// Makes a team for the flag --device; also makes the calling thread flush denormals to zero.
core::Result<std::unique_ptr<core::TeamRunner>> make_team(const Placement& placement);

// Whether `make_team` would find the device; does not open it. Error kResources as there.
core::Result<void> check_device(const std::string& what, const core::DeviceName& device);

// The teams of roles that share one device thread: one team per device. Owned by the owner of that
// thread and used on it.
class Teams {
 public:
  // The device's team. The first call for a device makes it, with that call's `threads`. Valid as
  // long as this object.
  core::Result<core::TeamRunner*> get(const std::string& what, const Placement& placement);

 private:
  std::map<std::string, std::unique_ptr<core::TeamRunner>> made_;  // by device
};

}  // namespace troupe::cli
