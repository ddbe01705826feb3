// Lets a node leave on request: its roles finish or go elsewhere, then it is
// dismissed, and it is not started again. Owned by the company, used on its strand; its coroutines
// are children of the role's scope.
#pragma once

#include "actors/company/node_registry.hpp"

#include <string>

namespace troupe::actors::company {

class NodeDrain {
 public:
  // All outlive the object.
  NodeDrain(const RoleContext& context,
            CompanyPort& port,
            LocalProcesses& processes,
            const Arrivals& arrivals,
            RoleSupervisor& roles,
            NodeRegistry& nodes,
            async::Notifier& changed)
      : context_(context),
        port_(port),
        processes_(processes),
        arrivals_(arrivals),
        roles_(roles),
        nodes_(nodes),
        changed_(changed) {}

  // Answers when the node has left, also a repeated request.
  async::task<core::Result<Ack>> on(DrainNode request);

 private:
  core::Result<std::string> node_named(const std::string& name) const;
  core::Result<void> begin(const std::string& node);
  async::task<void> drain(std::string node, core::Duration wait);
  async::task<void> take_away(std::string role, std::uint64_t epoch, core::Duration wait);
  async::task<void> see_off(std::string node);

  const RoleContext& context_;
  CompanyPort& port_;
  LocalProcesses& processes_;
  const Arrivals& arrivals_;
  RoleSupervisor& roles_;
  NodeRegistry& nodes_;
  async::Notifier& changed_;
};

}  // namespace troupe::actors::company
