// The node role joins a company, sends it heartbeats with the figures of its roles, and what the
// process prints, and starts and stops the roles of its process
// when the company asks. It tells the company which roles are there from an earlier head, and stops
// those that the company does not keep. Its strand has a thread of its own, so that no role delays
// a heartbeat. Owned by the process, which makes another one for each company that it joins; what
// NodePorts refers to outlives it.
#pragma once

#include "actors/node/hosted_roles.hpp"
#include "actors/node/log_backlog.hpp"

#include <functional>
#include <string>

namespace troupe::actors::node {

// What a node role uses of its process.
struct NodePorts {
  HostedRoles* roles = nullptr;
  // Introduces a role from an earlier head, which the company keeps.
  std::function<void(const std::string&)> announce = [](const std::string&) {};
  // Called once, on the strand, when the company is lost or has given this node up.
  std::function<void(const core::Error&)> left;
  // Called when the node has joined the company, and whenever the company answers a heartbeat.
  std::function<void(const Joined&)> in;
  std::function<void()> heard = [] {};
  // Bytes of the process in main memory; 0: not known.
  std::function<std::uint64_t()> memory = [] { return std::uint64_t{0}; };
  // What the process prints, for the company. Null: nothing is sent.
  LogBacklog* log = nullptr;
};

class NodeRole {
 public:
  NodeRole(RoleContext context, Join self, NodePorts ports);

  // Joins and then sends heartbeats until the company is lost, on the role's strand. Called once,
  // on any thread.
  void begin();

  // Starts a role; a role of an earlier epoch is stopped first. A repeated request is acknowledged
  // once the role is up. Refused when the role has run here with this epoch or a later one.
  async::task<core::Result<Ack>> on(Spawn request);
  // Acknowledges a repeated request; there is nothing to stop.
  async::task<core::Result<Ack>> on(StopRole request);

 private:
  async::task<void> attend();
  async::task<void> send_log();

  RoleContext context_;
  Join self_;
  NodePorts ports_;
};

}  // namespace troupe::actors::node
