// The node role joins a company, sends it heartbeats, and starts and stops roles when the company
// asks. Its strand has a thread of its own, so that no role delays a heartbeat. Owned by the
// process; what NodePorts refers to outlives it. Bound: one start or stop of a role at a time.
#pragma once

#include "actors/protocol/messages_node.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/cluster/role_host.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace troupe::actors {

// The interface that turns a Spawn message into a role; apps/session/roles implements it.
class RoleMaker {
 public:
  virtual ~RoleMaker() = default;
  // Loads what the role needs; slow parts run off the caller's strand. Errors name file and flag.
  virtual async::task<core::Result<cluster::RoleRecipe>> make(Spawn spawn) = 0;
};

// What a node role uses of its process.
struct NodePorts {
  // Adds a role to the transport of this process, on a strand of the roles' threads.
  std::function<core::Result<std::shared_ptr<cluster::Endpoint>>(cluster::Identity)> place;
  RoleMaker* maker = nullptr;
  // Called once, on the strand, when the company is lost or has given this node up.
  std::function<void(const core::Error&)> left;
  // Called when the node has joined the company.
  std::function<void()> in;
  // For the log.
  std::function<void(const std::string&)> note;
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

  // Stops every role. Before the node's own host stops; may be awaited on any executor.
  async::task<void> stop_roles();

  std::uint64_t run_id() const noexcept { return run_id_; }

 private:
  auto begin_change();
  async::task<void> attend();
  async::task<void> stop_here();
  void failed(const std::string& role, const core::Error& error);
  // Stops a role if its epoch is at most `epoch`; 0: whatever its epoch.
  async::task<void> remove(std::string role, std::uint64_t epoch = 0);

  RoleContext context_;
  Join self_;
  NodePorts ports_;
  std::atomic<std::uint64_t> run_id_ = 0;
  std::map<std::string, std::unique_ptr<cluster::RoleHost>> hosts_;
  std::map<std::string, std::uint64_t> ended_;  // newest epoch of the roles that were here
  bool changing_ = false;                       // a role is being started or stopped
  async::Notifier changed_;
};

}  // namespace troupe::actors
