// The actor that other processes reach first; each process has one. It introduces the roles of its
// process to every connected process and accepts the introductions of theirs. It monitors all
// remote actors: when one ends, it frees the name and tells the local roles and the hooks. It runs
// on CAF's threads, one message at a time. Owned by the actor system; ended by `Leave`.
#pragma once

#include "runtime/cluster/caf/core.hpp"
#include "runtime/cluster/caf/messages.hpp"

#include <caf/event_based_actor.hpp>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::cluster::exchange {

class Introducer final : public caf::event_based_actor {
 public:
  Introducer(caf::actor_config& config, std::shared_ptr<Core> core);

  caf::behavior make_behavior() override;
  void on_exit() override;
  const char* name() const override { return "troupe-introducer"; }

 private:
  // Another process, by its own introducer.
  struct Remote {
    caf::actor introducer;
    bool in = false;          // connected: each side introduces its roles to the other
    bool trusted = false;     // this process connected to it, so it may introduce any role
    std::vector<Dial> dials;  // calls of `connect` that wait for its answer
    std::set<PeerName> told;  // roles of other processes that it knows through this one
  };

  void dial(const Dial& wanted);
  void introduced(const Parcel& parcel, const caf::actor& who);
  core::Result<Directory::Claim> admitted(const wire::Hello& hello, const caf::actor& who);
  void bind(const wire::Hello& hello, const caf::actor& who);
  void answered(const Parcel& parcel);
  void let_in(Remote& remote);
  void introduce(const Remote& remote, const Binding& role);
  void acquaint(const Acquaint& pair);
  void recommend(const Binding& role, const Binding& to);
  void withdraw(const wire::Hello& role, const core::Error& cause);
  void withdrawn(const PeerName& name, std::uint64_t epoch, const core::Error& cause);
  void tell(const caf::actor& introducer, const wire::Hello& hello, const core::Result<void>& word);
  void ended(const caf::down_msg& down);
  void part(const caf::node_id& process);
  void lose_process(std::map<caf::node_id, Remote>::iterator place, const std::string& cause);
  void lose(const Binding& gone, const core::Error& cause);

  const std::shared_ptr<Core> core_;
  std::map<caf::node_id, Remote> remotes_;
};

}  // namespace troupe::cluster::exchange
