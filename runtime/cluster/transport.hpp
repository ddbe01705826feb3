// The interface through which one role calls others by name and serves their calls, in frames. Each
// role has a Transport of its own, uses it on its strand, and does not see what carries the frames
// (loopback, simulator, CAF). The role's host stops it.
#pragma once

#include "runtime/async/deadline.hpp"
#include "runtime/async/task.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/wire/frame.hpp"
#include "runtime/wire/header.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace troupe::cluster {

using PeerName = std::string;  // role and index: "generator/0"

struct Identity {
  PeerName self;
  core::RunId run;
  std::uint64_t epoch = 0;   // grows with each start of the role, to tell old answers from new
  std::string arithmetic{};  // the role's class of arithmetic; empty: any
};

// Answers one request. A failed Result goes back to the asker as its error.
using Handler = std::function<async::task<core::Result<wire::Frame>>(wire::Frame)>;

class Transport {
 public:
  Transport(Identity identity, async::Timers& timers)
      : identity_(std::move(identity)), timers_(timers) {}
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  // Sends a request and waits for its answer, a frame with the request's id. Errors: the failure
  // that the peer answers; kDeadline; kOverloaded at once when the peer's inbox is full or this
  // role already waits for kPendingCalls_max answers; kPeerLost at once when the peer is unknown,
  // does not serve yet, stops or dies; kClosed after `stop`. Their texts name the peer. The frame's
  // header must come from `new_request`, and `deadline` must not be none().
  virtual async::task<core::Result<wire::Frame>> call(PeerName peer,
                                                      wire::Frame request,
                                                      async::Deadline deadline) = 0;

  // From now on requests run `handler`, each as its own coroutine on the strand, at most
  // kRoleInbox_frames_max at a time. Called once.
  virtual void serve(Handler handler) = 0;

  // Ends the role's calls (kClosed) and cancels its handlers (their askers get kPeerLost). Returns
  // when all have ended. Idempotent.
  virtual async::task<void> stop() = 0;

  // The header of a new request; its id is used for nothing else.
  wire::Header new_request(async::Deadline deadline);

  const Identity& identity() const noexcept { return identity_; }
  async::Timers& timers() const noexcept { return timers_; }

 private:
  const Identity identity_;
  async::Timers& timers_;
  std::uint64_t last_request_ = 0;
};

}  // namespace troupe::cluster
