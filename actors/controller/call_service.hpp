// Answers the calls of episodes: gives each to a generator whose weights are new enough, calls of
// one session to the same one while it has room, and gives a call whose generator is lost or fails
// to another, with the same seed. Part of the controller, on its strand. Bound: the calls that
// environments have under way; kGeneratorCalls_max at a generator.
#pragma once

#include "actors/controller/fleet.hpp"
#include "actors/controller/run_state.hpp"
#include "actors/protocol/messages_calls.hpp"

namespace troupe::actors::controller {

class CallService {
 public:
  CallService(RunState& run, Fleet& generators) : run_(run), generators_(generators) {}

  // Errors: that of the generators, once kTicketFailures_max of them have failed at it or
  // kTicketLosses_max were lost, or at once
  // where the request is at fault; kClosed at the end of the run.
  async::task<core::Result<Completed>> complete(Complete request);

 private:
  RunState& run_;
  Fleet& generators_;
};

}  // namespace troupe::actors::controller
