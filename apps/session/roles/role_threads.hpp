// Where the roles of a process compute: its threads, the teams on them, and the class of arithmetic
// of each. Owned by the role loader, used on its compute thread; outlives the roles.
#pragma once

#include "actors/protocol/messages_node.hpp"
#include "apps/cli/placement.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/core/team.hpp"

#include <map>
#include <memory>
#include <string>

namespace troupe::session {

// A role to make.
struct RoleOrder {
  const config::TrainConfig& config;
  const actors::Spawn& spawn;
};

class RoleThreads {
 public:
  RoleThreads();

  // The team for a role of that kind: on a GPU one of `compute`, or of the role's own thread. All
  // roles on the CPU share one team.
  core::Result<core::TeamRunner*> team_of(const RoleOrder& order,
                                          const std::string& kind,
                                          bool own_thread = false);
  core::Result<core::TeamRunner*> team_of(const RoleOrder& order) {
    return team_of(order, order.spawn.kind);
  }
  // The class that the role computes in on this team.
  std::string class_of(const RoleOrder& order, core::TeamRunner& team);

  async::DeviceThread& compute() noexcept { return compute_; }
  std::string wedged(core::Duration limit) const { return compute_.wedged(limit); }  // `compute`
  // Rules score there; workers start and end.
  async::DeviceThread& blocking() noexcept { return blocking_; }
  // One of that name: a generator waits for weights there, or computes if it has its own.
  async::DeviceThread& named(const std::string& name, void (*begin)() = nullptr);

 private:
  std::map<std::string, std::string> arithmetic_;  // by device and dtype
  cli::Teams teams_;                             // of `compute_`; made when the first role computes
  std::map<std::string, cli::Teams> own_teams_;  // of generators with threads of their own
  async::DeviceThread compute_;
  async::DeviceThread blocking_;
  std::map<std::string, std::unique_ptr<async::DeviceThread>> named_;
};

}  // namespace troupe::session
