// A node: joins a company, gives signs of life, starts and stops the roles it is told to. Its own
// strand lives on a thread of its own, so that a sign of life waits for no role. Owned by the
// process; the places, the maker and the hooks outlive it. Bound: one start or stop of a role at a
// time.
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

// Turns a Spawn message into a role: whoever wires the process knows what each kind needs.
class RoleMaker {
 public:
  virtual ~RoleMaker() = default;
  // Loads what the role needs; slow parts run off the caller's strand. Errors name file and flag.
  virtual async::task<core::Result<cluster::RoleRecipe>> make(Spawn spawn) = 0;
};

struct NodePorts {
  // A place for a role in the transport of this process, on a strand of the roles' threads.
  std::function<core::Result<std::shared_ptr<cluster::Endpoint>>(cluster::Identity)> place;
  RoleMaker* maker = nullptr;
  // The company is gone or has given this node up: called once, on the strand, with the cause.
  std::function<void(const core::Error&)> left;
  // The company took the node in.
  std::function<void()> in;
  // For the log.
  std::function<void(const std::string&)> note;
};

class NodeRole {
 public:
  NodeRole(RoleContext context, Join self, NodePorts ports);

  // Joins and then gives signs of life until the company is lost, on the role's strand. Called
  // once, on any thread.
  void begin();

  // Repeated: the role is stopped and started again.
  async::task<core::Result<Ack>> on(Spawn request);
  // Repeated: acknowledged; there is nothing to stop.
  async::task<core::Result<Ack>> on(StopRole request);

  // Stops every role. Before the node's own host stops; may be awaited on any executor.
  async::task<void> stop_roles();

  std::uint64_t run_id() const noexcept { return run_id_; }

 private:
  auto begin_change();
  async::task<void> attend();
  async::task<void> stop_here();
  void failed(const std::string& role, const core::Error& error);
  async::task<void> remove(std::string role);

  RoleContext context_;
  Join self_;
  NodePorts ports_;
  std::atomic<std::uint64_t> run_id_ = 0;
  std::map<std::string, std::unique_ptr<cluster::RoleHost>> hosts_;
  bool changing_ = false;  // a role is being started or stopped
  async::Notifier changed_;
};

}  // namespace troupe::actors
