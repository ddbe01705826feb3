// Conductor, the base of the roles that direct a run: Controller for reinforcement learning,
// StepController for the supervised methods. It runs their loop and what goes with it, and saves
// the last committed update when the run ends early. Runs on the strand of its role.
#pragma once

#include "actors/controller/checkpointer.hpp"
#include "actors/controller/run_state.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::actors::controller {

class Conductor {
 public:
  Conductor(RoleContext context, RunPlan plan, RunListener& listener);
  Conductor(const Conductor&) = delete;
  Conductor& operator=(const Conductor&) = delete;
  virtual ~Conductor() = default;

  // Does the whole run. A run that ends early first saves the last committed update, unless the
  // policy has learned beyond it; the error says where, or why not. kInterrupted: asked to stop.
  // kPeerLost: policy, critic or data is gone; the run can go on from its last checkpoint.
  // kDeadline: another role stayed away for too long.
  async::task<core::Result<void>> run();

  // Ends the run for an error that happened outside. On the strand.
  void end(core::Error error);

  // Has the roles load the state of a checkpoint. Before `run`.
  async::task<core::Result<void>> load(std::string folder) {
    return checkpointer_.load(std::move(folder));
  }

  // The company reports here that another role came up or was lost; on the strand, at any time. The
  // run ends when policy, critic or data is lost; others may come and go. `epoch`: the role's, as
  // the company counts it.
  virtual void peer_up(const std::string& name, std::uint64_t epoch = 0);
  virtual void peer_lost(const std::string& name, const core::Error& error);
  // The session shall end at the next checkpoint, because another one can have more ranks, as the
  // text says; "": it need not. On the strand.
  void regroup(std::string why) { run_.regroup = std::move(why); }

 protected:
  // Begins what runs alongside the loop, in the run's scope.
  virtual void begin_beside() = 0;
  // The run's scope is about to go: what uses it must stop.
  virtual void leave_scope() {}
  // Drives the training to its end.
  virtual async::task<core::Result<void>> loop() = 0;

  RunState run_;
  Checkpointer checkpointer_;

 private:
  static async::task<core::Result<void>> live(async::Scope& scope, Conductor* self);
  static async::task<core::Result<void>> begin_scope(async::Scope& scope, Conductor* self);
  async::task<core::Result<void>> beside();
  static async::task<core::Result<void>> fail_with(core::Error error);

  std::optional<core::Error> early_;  // an error from before the run began
};

}  // namespace troupe::actors::controller
