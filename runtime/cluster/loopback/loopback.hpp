// The network inside one process: roles call each other through the same envelopes as over a wire.
// Frames are copied and checked on arrival; no pointer crosses from role to role. Owned by the code
// that wires the company; safe on any thread. Bounds: each role's inbox, counted before a frame is
// queued.
#pragma once

#include "runtime/async/deadline.hpp"
#include "runtime/async/task.hpp"
#include "runtime/cluster/endpoint.hpp"
#include "runtime/core/result.hpp"

#include <memory>

namespace troupe::cluster {

class LoopbackNetwork {
 public:
  explicit LoopbackNetwork(async::Timers& timers);
  LoopbackNetwork(const LoopbackNetwork&) = delete;
  LoopbackNetwork& operator=(const LoopbackNetwork&) = delete;
  ~LoopbackNetwork();

  // Adds a role and returns its endpoint, which runs on `strand`. Error: kInvalidArgument when the
  // name is in use.
  core::Result<std::shared_ptr<Endpoint>> join(Identity identity, async::Executor strand);

 private:
  class Member;
  struct Directory;
  std::shared_ptr<Directory> directory_;
  async::Timers& timers_;
};

}  // namespace troupe::cluster
