// The other processes that an introducer knows, and what it says to theirs: roles that come and go,
// and whether it takes a role in. Owned by the introducer, used in its messages alone.
#pragma once

#include "runtime/cluster/caf/core.hpp"
#include "runtime/cluster/caf/messages.hpp"

#include <caf/event_based_actor.hpp>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace troupe::cluster::exchange {

// Another process, by its own introducer.
struct Remote {
  caf::actor introducer;
  bool in = false;          // connected: each side introduces its roles to the other
  bool trusted = false;     // this process connected to it, so it may introduce any role
  std::vector<Dial> dials;  // calls of `connect` that wait for its answer
  std::set<PeerName> told;  // roles of other processes that it knows through this one

  // Answers the calls that still wait.
  void end_dials(const core::Error& error);
};

class Remotes {
 public:
  // Both outlive the object. `self`: the introducer of this process.
  Remotes(caf::event_based_actor& self, Core& core) : self_(self), core_(core) {}

  Remote* find(const caf::node_id& process);  // null: not known
  // Makes the process of that introducer known, if it is not.
  Remote& of(const caf::actor& introducer);
  // From now on the process has this introducer. If it is gone already, CAF reports that at once.
  void watch(Remote& remote, const caf::actor& introducer);
  std::optional<Remote> forget(const caf::node_id& process);  // none: it was not known
  void close();  // ends all dials; this process leaves the network

  void introduce(const Remote& remote, const Binding& role);
  // Introduces the local roles, once.
  void let_in(Remote& remote);
  // Introduces a role of another process to the process of `to`, which has this one forward frames.
  void recommend(const Binding& role, const Binding& to);
  // Tells the processes that know a role through this one that it has ended. CAF delivers this
  // after the introduction.
  void withdraw(const wire::Hello& role, const core::Error& cause);
  // Sends an acknowledgement or a failure to another introducer, under the name that `hello` gives.
  void tell(const caf::actor& introducer, const wire::Hello& hello, const core::Result<void>& word);

 private:
  caf::event_based_actor& self_;
  Core& core_;
  std::map<caf::node_id, Remote> remotes_;
};

}  // namespace troupe::cluster::exchange
