// The actor that other processes reach first; each process has one. It introduces the roles of its
// process to every connected process and accepts the introductions of theirs. It monitors all
// remote actors: when one ends, it frees the name and tells the local roles and the hooks. It runs
// on CAF's threads, one message at a time. Owned by the actor system; ended by `Leave`.
#pragma once

#include "runtime/cluster/caf/remotes.hpp"

#include <memory>
#include <string>

namespace troupe::cluster::exchange {

class Introducer final : public caf::event_based_actor {
 public:
  Introducer(caf::actor_config& config, std::shared_ptr<Core> core);

  caf::behavior make_behavior() override;
  void on_exit() override;
  const char* name() const override { return "troupe-introducer"; }

 private:
  void dial(const Dial& wanted);
  void present(const Present& wanted);
  void introduced(const Parcel& parcel, const caf::actor& who);
  core::Result<Directory::Claim> admitted(const wire::Hello& hello, const caf::actor& who);
  void bind(const wire::Hello& hello, const caf::actor& who);
  void answered(const Parcel& parcel);
  void acquaint(const Acquaint& pair);
  void withdrawn(const PeerName& name, std::uint64_t epoch, const core::Error& cause);
  void ended(const caf::down_msg& down);
  void lose_process(const caf::node_id& process, const std::string& cause);
  void lose(const Binding& gone, const core::Error& cause);

  const std::shared_ptr<Core> core_;
  Remotes remotes_{*this, *core_};
};

}  // namespace troupe::cluster::exchange
