// The client's side of a door: a Unix socket, and every connection that a process of this user
// makes to it is carried through the door at HOST:PORT to one service there. Owned by the node;
// works on a strand of the io threads, which outlive it; its own functions are called from other
// threads. Bounds: kDoorConnections_max connections, kSpliceConnect to enter.
#pragma once

#include "runtime/async/io_threads.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/door_auth.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe::net {

class Splice {
 public:
  // Introduces itself at the door before it opens the socket, so that a wrong proof shows here.
  // Blocks at most for `deadline`; no io thread. `log` is called on the strand for connections that
  // later cannot be carried. Errors: kConfig (the proof, either side's), kNotFound (no such
  // service), kPeerLost (nobody there, or not a door), kDeadline, kResources (no place for the
  // socket).
  static core::Result<std::unique_ptr<Splice>> open(
      async::IoThreads& io,
      const std::string& host,
      std::uint16_t port,
      DoorAuth auth,
      const std::string& service,
      core::Duration deadline,
      std::function<void(const std::string&)> log = {});
  ~Splice();  // stop()
  Splice(const Splice&) = delete;
  Splice& operator=(const Splice&) = delete;

  const std::string& path() const noexcept;
  // What the door handed over at the introduction.
  const std::string& pass() const noexcept;

  // Closes the socket and every connection, and waits for their ends. Idempotent; no io thread.
  void stop();

 private:
  struct Impl;
  explicit Splice(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::net
