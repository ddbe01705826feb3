// The transport over CAF (the C++ Actor Framework), through which roles of different processes call
// each other. A process has one Exchange, which owns the actor system, one actor for each local
// role, and the directory of names. Only frames are sent. Hooks run on CAF's threads, roles on
// their strands. The exchange listens on and connects to Unix sockets of this user alone, whose
// processes are trusted to speak CAF's protocol; between hosts an authenticated tunnel carries the
// connection (docs/adr/0008-caf-on-unix-sockets.md). Bounds: kPeerNames_max names, kFrame_bytes_max
// a frame, each role's inbox; every wait has a deadline.
#pragma once

#include "runtime/async/deadline.hpp"
#include "runtime/async/task.hpp"
#include "runtime/cluster/endpoint.hpp"
#include "runtime/core/result.hpp"
#include "runtime/wire/hello.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

namespace troupe::cluster {

class Exchange {
 public:
  // Called on CAF's threads; `refused` from several at once, the others one at a time. They must be
  // quick and thread-safe, and must not call `connect` or `close`.
  struct Hooks {
    // Decides whether a remote address may have this name. `origin` identifies the process of the
    // address. A process counts as connected once one of its names was admitted. Not called for
    // names that come from a process to which this one connected. Without this hook no name is
    // admitted.
    std::function<core::Result<void>(const wire::Hello&, const std::string& origin)> admit;
    // The name can be called from now on.
    std::function<void(const wire::Hello&, const std::string& origin)> arrived;
    // The role's actor, its process or the link to it has ended, or the role has started again with
    // a higher epoch. Pending calls have been told. Not called for names given up by `forget`.
    std::function<void(const PeerName&, std::uint64_t epoch, const core::Error& cause)> lost;
    // For the log: what was turned away, such as the frame of a stranger or a malformed one.
    std::function<void(const std::string& what)> refused;
  };

  struct Counters {
    std::uint64_t frames_in = 0, frames_out = 0;
    std::uint64_t bytes_in = 0, bytes_out = 0;
    std::uint64_t refused = 0;  // frames and introductions that were turned away
    std::uint64_t stray = 0;    // frames of roles that have left or were given up
  };

  // `timers` outlive the exchange. Error: kResources.
  static core::Result<std::unique_ptr<Exchange>> create(Hooks hooks, async::Timers& timers);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange();  // close(), at most kShutdownDeadline

  // Adds a role of this process and announces it to every connected process. Errors:
  // kInvalidArgument (the name is in use or unfit), kOverloaded (too many names), kClosed.
  core::Result<std::shared_ptr<Endpoint>> join(Identity identity, async::Executor strand);

  // Lets other processes of this user connect. Returns the path of the socket, which lies in a
  // folder of its own until `close`. Called once. Errors: kResources, naming the place; kClosed.
  core::Result<std::string> listen();

  // Introduces the local role `self.name` to the process that listens at this path, then all other
  // local roles, and learns of its roles. Blocks until the other side has agreed, so never call it
  // on a CAF thread. Errors: kPeerLost (nobody listens there, another user does, or it ended),
  // kDeadline (frozen, or no troupe process), kInvalidArgument (this process itself, or no local
  // role has the name), kClosed, or what the other side said.
  core::Result<void> connect(const std::string& path,
                             const wire::Hello& self,
                             core::Duration deadline);

  // Keeps a local role from being introduced to the processes that this one connects to from now
  // on, until `announce` introduces it to all. Both do nothing for a name that is not local.
  void keep_back(const PeerName& name);
  void announce(const PeerName& name);

  // Introduces a local role once more to the process of the remote role `to`, and waits for the
  // answer: once it is there, that process knows this role and no other under the name. Blocks, so
  // never call it on a CAF thread. Errors: as for `connect`; kInvalidArgument while the name
  // belongs to another process there.
  core::Result<void> present(const PeerName& name, const PeerName& to, core::Duration deadline);

  // Fences a remote name: calls to it fail with kPeerLost at once, frames of its address are
  // counted and dropped (its requests are answered with kPeerLost), and it comes back only with a
  // higher epoch, from this process or another. Does nothing if the name is not known, or is known
  // with an epoch beyond `last`, which is another life than the caller means.
  void forget(const PeerName& name,
              const core::Error& cause,
              std::uint64_t last = std::numeric_limits<std::uint64_t>::max());

  // Ends all dealings with the process of that remote name, and with those that are known through
  // it: their roles are lost, and what they send is refused. Does nothing for an unknown name.
  void part_from(const PeerName& name);

  // Lets two roles of different connected processes call each other, until one of them is lost.
  // Does nothing for an unknown name. A role that starts again must be introduced again.
  void introduce(const PeerName& one, const PeerName& other);

  // Ends the actor of a local role, as a fault in tests. False when there is no such role.
  bool kill_actor(const PeerName& name);

  // The actor id of a local or remote role in its process; 0 when the name is not known.
  std::uint64_t actor_id(const PeerName& name) const;
  Counters counters() const;

  // Leaves the network. Every role must have been stopped before; roles that were not are ended,
  // and the error names them, or the actor that does not end. While a `connect` is under way
  // beyond the deadline, it does nothing but return kDeadline. Idempotent.
  core::Result<void> close(core::Duration deadline);

 private:
  struct Impl;
  explicit Exchange(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::cluster
