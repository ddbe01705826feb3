// Maps the names of roles to the addresses of their actors, for this process and those that it
// knows. Decides which address may have which name, and whether a frame came from the role that its
// header names. Shared by all actors and strands of an exchange; safe on any thread, and makes no
// callback under its lock. Bounds: kPeerNames_max names at any time, and for as many names that
// have left their last address and epoch; the oldest are forgotten first, fenced ones last.
#pragma once

#include "runtime/cluster/caf/parcel.hpp"
#include "runtime/cluster/transport.hpp"
#include "runtime/core/result.hpp"
#include "runtime/wire/hello.hpp"

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/node_id.hpp>

#include <functional>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

namespace troupe::cluster::exchange {

// Where an actor is: its process and its number there. Equal for an actor and its proxies, whatever
// pointers they have.
struct Address {
  caf::node_id node;
  caf::actor_id actor = 0;

  friend bool operator==(const Address&, const Address&) = default;
};

// `actor` is a handle or an address of CAF.
inline Address address_of(const caf::strong_actor_ptr& actor) {
  return actor ? Address{actor->node(), actor->id()} : Address{};
}
template <class Actor>
Address address_of(const Actor& actor) {
  return actor ? Address{actor.node(), actor.id()} : Address{};
}

struct Binding {
  wire::Hello hello;  // without its pass
  caf::actor handle;
  bool local = false;
  bool kept_back = false;  // local, and not introduced to processes that connect
};

class Directory {
 public:
  enum class Claim { kNew, kReplaces, kKnown };
  // Which address a frame came from: the one bound to the name that its header gives, the last one
  // bound to it, a fenced one, or another.
  enum class Sender { kBound, kDeparted, kFenced, kStranger };

  // Adds a role of this process. Returns the introducers of the connected processes, to which the
  // caller must announce the role. Errors: kInvalidArgument (name in use or unfit), kOverloaded,
  // kClosed.
  core::Result<std::vector<caf::actor>> join(const wire::Hello& hello, const caf::actor& handle);

  // Checks whether a remote address may have this name. Errors: as for `join`.
  core::Result<Claim> claim(const wire::Hello& hello, const Address& address) const;
  void bind(const wire::Hello& hello, const caf::actor& handle);

  // Keeps a local role from being introduced to processes that connect, until `announce` gives it
  // another actor. `announce` returns the introducers of the connected processes, to which the
  // caller must introduce it; none when the role is gone.
  void keep_back(const PeerName& name);
  std::vector<caf::actor> announce(const PeerName& name, const caf::actor& handle);

  // Marks another process as connected; returns the local roles, which the caller introduces there.
  std::vector<Binding> let_in(const caf::actor& introducer);

  // These unbind names. Each returns the bindings that it removed.
  std::optional<Binding> drop(const PeerName& name, const Address& address);
  std::optional<Binding> drop(const Address& address);  // of a remote role
  // Drops the roles and introducers of all processes but this one and those `known` accepts.
  std::vector<Binding> drop_unless(const std::function<bool(const caf::node_id&)>& known);
  // Fences a remote role of at most this epoch: its frames are refused.
  std::optional<Binding> fence(const PeerName& name, std::uint64_t epoch);

  Sender sender(const PeerName& name, const Address& address) const;
  std::optional<Binding> find(const PeerName& name) const;
  std::vector<Binding> locals() const;  // the roles of this process

  // Sends a frame from a local role to a peer, and returns the epoch of the peer. Errors: kPeerLost
  // (no such peer), kClosed (no such role).
  core::Result<std::uint64_t> send(const PeerName& from,
                                   const PeerName& to,
                                   const wire::Frame& frame) const;

  // Forgets everything; nothing can be sent or joined afterwards.
  void close();

 private:
  struct Last {  // the last binding of a name that is free now
    core::RunId run;
    std::uint64_t epoch = 0;
    Address address;
    bool fenced = false;
    std::uint64_t turn = 0;  // order in which names left
  };
  using Bound = std::map<PeerName, Binding>;

  std::vector<Binding> locals_now() const;
  core::Result<void> fit(const PeerName& name) const;
  Binding take(Bound::iterator place, bool fenced = false);
  void make_room();

  mutable std::shared_mutex mutex_;
  Bound bound_;
  std::map<PeerName, Last> last_;
  std::uint64_t turns_ = 0;
  std::vector<caf::actor> introducers_;
  bool closed_ = false;
};

// A name or text from a peer, made safe for a log line.
std::string shown(const std::string& text);

}  // namespace troupe::cluster::exchange
