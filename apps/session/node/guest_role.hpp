// A role of one's own in a company that one joined as a guest: it has the run's id and this start's
// epoch, plays on a strand of the guest's io threads, and is reached by the run under its name.
// Owned by a command, used on its main thread; stopped before the node is taken down.
#pragma once

#include "apps/session/node/node_process.hpp"
#include "runtime/cluster/role_host.hpp"

#include <memory>
#include <string>

namespace troupe::app {

class GuestRole {
 public:
  // `device`: for the role's long jobs; may be null, outlives this.
  explicit GuestRole(std::string name, async::DeviceThread* device = nullptr)
      : name_(std::move(name)), device_(device) {}

  // Blocks until the role has started. Errors: those of joining the exchange and of the factory.
  core::Result<void> start(const NodeGuest& guest, cluster::RoleHost::Factory factory);
  // Blocks until the role is gone. Does nothing when it was not started.
  void stop(const NodeGuest& guest);

 private:
  const std::string name_;
  async::DeviceThread* const device_;
  std::unique_ptr<cluster::RoleHost> host_;
};

}  // namespace troupe::app
