// Ends a run that was asked to stop where its update cannot be finished: no role is there to go on
// with, or the time that it was given is too short (Grace). What is committed is saved if that
// fits; what was sampled is in the experience log anyway. Part of the controller, on its strand.
#pragma once

#include "actors/controller/checkpointer.hpp"
#include "actors/controller/run_state.hpp"

#include <functional>
#include <optional>
#include <string>

namespace troupe::actors::controller {

class EarlyStop {
 public:
  // All outlive it. `alone`: no role is left to finish the update or the evaluation with.
  EarlyStop(RunState& run, Checkpointer& checkpointer, std::function<bool()> alone)
      : run_(run), checkpointer_(checkpointer), alone_(std::move(alone)) {}

  // Waits until a stop is asked for that the update loop cannot reach by itself; then saves, and
  // fails with kInterrupted.
  async::task<core::Result<void>> watch();

  // For the update loop, before a step that needs time: does not return any more once the run ends
  // early.
  async::task<void> pass();
  // True when the run was asked to stop and what is under way cannot be finished and saved in time.
  bool short_of_time();

 private:
  bool may_save() const;
  core::Duration reserve(core::TimePoint until) const;
  async::task<core::Result<void>> save();
  async::task<core::Result<void>> save_in_time(core::TimePoint until);
  std::string words() const;

  RunState& run_;
  Checkpointer& checkpointer_;
  const std::function<bool()> alone_;
  std::optional<core::TimePoint> asked_;  // when a stop with a limit was first seen
  bool ending_ = false;
  std::optional<core::Result<void>> saved_;  // how saving ended
};

}  // namespace troupe::actors::controller
