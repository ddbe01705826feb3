// The transport over CAF, through which roles of different processes call each other. The one
// Exchange of a process owns the actor system, in which each local role has one actor, and the
// directory of names. Only frames are sent. Hooks run on CAF's threads, roles on their strands. It
// listens on and connects to Unix sockets of this user alone, whose processes are trusted to speak
// CAF's protocol; between hosts an authenticated tunnel carries it
// (docs/adr/0008-caf-on-unix-sockets.md). Bounds: kPeerNames_max names, kFrame_bytes_max a frame,
// each role's inbox; every wait has a deadline.
#pragma once

#include "runtime/async/deadline.hpp"
#include "runtime/async/task.hpp"
#include "runtime/cluster/endpoint.hpp"
#include "runtime/core/result.hpp"
#include "runtime/wire/hello.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe::cluster {

class Exchange {
 public:
  // Called on CAF's threads, one at a time but for `refused`: quick, thread-safe, and without calls
  // of `connect` and `close`.
  struct Hooks {
    // May a remote address be known under this name? `origin` names the process it came from and is
    // equal for all its addresses. A process is in once one of its names was admitted. Not asked
    // about the names of a process that this one connected to. Without this hook nobody is
    // admitted.
    std::function<core::Result<void>(const wire::Hello&, const std::string& origin)> admit;
    // The name can be called from now on.
    std::function<void(const wire::Hello&, const std::string& origin)> arrived;
    // The role's actor, its process or the link to it has ended; pending calls have been told. Not
    // called for names given up by `forget`.
    std::function<void(const PeerName&, std::uint64_t epoch, const core::Error& cause)> lost;
    // For the log: strangers, garbage, wrong names.
    std::function<void(const std::string& what)> refused;
  };

  struct Counters {
    std::uint64_t frames_in = 0, frames_out = 0;
    std::uint64_t bytes_in = 0, bytes_out = 0;
    std::uint64_t refused = 0;  // frames and introductions that were turned away
    std::uint64_t stray = 0;    // frames of addresses that have been given up
  };

  // `timers` outlive the exchange. Error: kResources.
  static core::Result<std::unique_ptr<Exchange>> create(Hooks hooks, async::Timers& timers);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange();  // close(), at most kShutdownDeadline

  // Adds a role of this process and announces it to every process that is in. Errors:
  // kInvalidArgument (the name is in use), kClosed.
  core::Result<std::shared_ptr<Endpoint>> join(Identity identity, async::Executor strand);

  // Lets other processes of this user connect; returns the path of the socket, which lies in a
  // folder of its own until `close`. Called once. Error: kResources naming the place.
  core::Result<std::string> listen();

  // Introduces the local role `self.name` to the process that listens at this path, then all other
  // local roles, and learns of its roles. Blocks until the other side has agreed, so never call it
  // on a CAF thread. Errors name the path: kPeerLost (nobody listens there, another user does, or
  // it ended), kDeadline (frozen, or no troupe process), or what the other side said.
  core::Result<void> connect(const std::string& path,
                             const wire::Hello& self,
                             core::Duration deadline);

  // Fences a remote name: calls to it fail with kPeerLost at once, frames of its address are
  // counted and dropped (its requests are answered with kPeerLost), and it comes back only with a
  // higher epoch. Does nothing if the name is not known.
  void forget(const PeerName& name, const core::Error& cause);

  // Two roles of different processes that are in may call each other from now on, until one of them
  // is lost. Does nothing for an unknown name; a role that starts again is introduced anew.
  void introduce(const PeerName& one, const PeerName& other);

  // Ends a local role's actor, and only that: a fault for tests. False when there is none.
  bool kill_actor(const PeerName& name);

  // The actor id of a local or remote role in its process; 0 when the name is not known.
  std::uint64_t actor_id(const PeerName& name) const;
  Counters counters() const;

  // Every role must have been stopped, and no `connect` be under way. Always leaves the network;
  // the error names what was still alive (roles not stopped, or an actor that does not end).
  // Idempotent.
  core::Result<void> close(core::Duration deadline);

 private:
  struct Impl;
  explicit Exchange(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::cluster
