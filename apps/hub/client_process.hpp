// The side process that speaks to a hub: stock Python, which says what it does in lines of JSON
// (hub_client.py). One thread uses it.
#pragma once

#include "apps/side/side_program.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"

#include <optional>
#include <utility>

namespace troupe::hub {

using side::Json;

class ClientProcess {
 public:
  // `job`: what hub_client.py is to do. Error: kResources.
  static core::Result<ClientProcess> start(Json job);

  // The next line, waited for up to `limit`; nothing when none came. Errors: kPeerLost (it has
  // ended), kDeadline (it gave no sign of life).
  core::Result<std::optional<Json>> next(core::Duration limit);
  // Lets it go on after a plan.
  void go() { program_.say("go\n"); }
  void kill() { program_.child().kill(); }

 private:
  explicit ClientProcess(side::SideProgram program) : program_(std::move(program)) {}

  side::SideProgram program_;
};

}  // namespace troupe::hub
