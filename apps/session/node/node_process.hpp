// Runs this process as a node of a company, from connecting until it is dismissed, stopped or given
// up. When the company's head is gone or silent, the node keeps its roles and waits for the next
// head, as long as the company has said. When another run is there instead, it ends as lost: what
// it hosts belongs to the last one. Builds the threads and the transport, and takes them down again
// in order. Called on the main thread, which it blocks.
#pragma once

#include "actors/gang/company_rendezvous.hpp"
#include "actors/node/node_role.hpp"
#include "apps/session/node/join_flags.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/cluster/caf/exchange.hpp"
#include "runtime/cluster/role_host.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::session {

struct NodeSelf {
  std::string name;                // "node/gpu1"
  std::vector<std::string> kinds;  // kinds of roles that it offers
  std::string build, arithmetic;   // empty: this program's
  std::uint64_t run_id = 0;        // the run that it belongs to; 0: whichever it meets
  std::string run{};               // the folder of that run
};

// The way into a company, for one node and once.
struct Entrance {
  std::string socket;  // of the company, or of the tunnel to it, on this host
  std::string pass;
  std::shared_ptr<net::Tunnel> tunnel{};  // null on the company's own host
};
// Opens a tunnel to a company's gateway. Errors: those of `enter`.
core::Result<Entrance> enter_company(async::IoThreads& io, const JoinTarget& target);

enum class NodeEnd {
  kDismissed,  // the company asked it to end
  kStopped,    // by a signal
  kLost,       // the company went away, or gave the node up
};

// What the caller of a node gets once the company has admitted it: the network, threads, and calls
// to the company.
struct NodeGuest {
  cluster::Exchange* exchange = nullptr;
  async::IoThreads* io = nullptr;
  std::uint64_t run_id = 0;
  std::string run_folder{};  // as its head calls it
  std::uint64_t epoch = 0;
  actors::RoleContext context;         // of the node's own role, for calls to company/0
  async::IoThreads* own_io = nullptr;  // where that role lives

  // Runs a coroutine on the strand of the node's role; blocks until its result.
  template <class T>
  T run(async::task<T> body) const {
    return own_io->run(async::run_on(context.scope->executor(), std::move(body)));
  }

  // Starts a role of the caller's own, which the run addresses as `name`, with the run's id, the
  // node's epoch and a strand of `io`, and waits until the head has taken it in. `device`: for its
  // long jobs; may be null, outlives the role. Errors: those of joining the exchange and of the
  // factory; what the head says, kInvalidArgument when the name stays another process's.
  core::Result<std::unique_ptr<cluster::RoleHost>> host(std::string name,
                                                        cluster::RoleHost::Factory factory,
                                                        async::DeviceQueue* device) const;
  // Stops a role that `host` started; call it before the node is taken down. Null: does nothing.
  void stop(std::unique_ptr<cluster::RoleHost>& role) const;

 private:
  core::Result<void> be_taken_in(const std::string& name) const;
};

// What a node process calls.
struct NodeCalls {
  // Makes the roles that the company asks for; empty when the node offers none. `meet`: asks the
  // company where the other ranks of a gang are.
  std::function<std::unique_ptr<actors::node::RoleMaker>(actors::gang::AskToMeet meet)> maker;
  // Looks for the company again, for some seconds at most; an error says that it is not there.
  // Null: the node does not outlive its company's head.
  std::function<core::Result<Entrance>()> find_again;
  // False: the node waits for its company's next head no longer, though the company would have it.
  std::function<bool()> may_wait = [] { return true; };
  std::string patience{};  // the wait in words: ", for at most 60 s"
  // Called on the main thread each time that a company has admitted the node. False or an error
  // ends the node.
  std::function<core::Result<bool>(NodeGuest)> once_in;
  // Called on the main thread before the node is taken down.
  std::function<void(NodeGuest)> before_end;
  std::function<void(const std::string&)> note;
  // What the process prints, sent to the company. Null: nothing is.
  std::shared_ptr<actors::node::LogBacklog> log{};
  // Ends this process at once, because a job of its device is wedged. Null: it is not looked at.
  std::function<void()> end_now;
};

// Returns how the node ended. Error: the company could not be reached or refused the node.
core::Result<NodeEnd> live_as_node(const NodeSelf& self, Entrance entrance, const NodeCalls& calls);

// As live_as_node, through a company's gateway.
core::Result<NodeEnd> live_through_gateway(async::IoThreads& io,
                                           const JoinTarget& target,
                                           NodeSelf self,
                                           const NodeCalls& calls);

}  // namespace troupe::session
