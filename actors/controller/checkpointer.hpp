// Makes the checkpoints of a run: has policy, critic and data write their state into one folder,
// which the listener commits. Records whether one of those roles was lost, and saves once more when
// a run ends early. Part of the controller, on its strand. One save at a time.
#pragma once

#include "actors/controller/run_state.hpp"
#include "runtime/store/save_pace.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::controller {

class Checkpointer {
 public:
  // `run` outlives it.
  explicit Checkpointer(RunState& run)
      : run_(run), pace_(run.plan.save_minutes, run.context.timers->now()) {}

  // Has policy, critic and data load their state from a checkpoint folder.
  // kPeerLost: policy or critic live on from an earlier head and hold other updates than the run
  // can take from its log; they must start again.
  async::task<core::Result<void>> load(std::string folder);
  // The failure of policy or critic whose state does not fit the log.
  core::Failure misfit(std::uint64_t known);
  // Saves the state after `done` updates. With `models` the checkpoint also gets the policy as a
  // model folder, and the critic if the plan says so. Waits while the disk is full. kPeerLost: it
  // is saved, and the run goes on from there with more ranks (Conductor::regroup).
  async::task<core::Result<void>> save(std::uint64_t done, bool models);
  // Saves the last committed update of a run that ends with `error`. Returns that error; its text
  // also says where the update is saved, or why it could not be.
  async::task<core::Result<void>> save_last(core::Error error);

  // True when time alone calls for a checkpoint.
  bool due() const { return pace_.due(run_.context.timers->now()); }

  // Updates done at the newest checkpoint that this object made.
  const std::optional<std::uint64_t>& saved() const noexcept { return saved_; }
  // True when the last committed update is in no checkpoint.
  bool unsaved() const;

  // True for policy, critic (if the run has one) and data.
  bool holds_state(const std::string& peer) const;
  // True when one of them was lost, and with it what the run learned since the last checkpoint.
  bool state_lost() const noexcept { return state_lost_; }
  void lose_state() noexcept { state_lost_ = true; }
  // Turns the error of a call to such a role into a failure; records the role's loss.
  core::Failure failure_of(core::Error error);
  // The failure of an update in which policy or critic failed. After an error that a restart of the
  // trainers may cure, another session begins, until the update has failed kUpdateFailures_max
  // times. Other errors, such as a NaN loss, would only come again. `what` names it in messages;
  // empty: its number does.
  core::Failure update_failed(std::uint64_t update,
                              const core::Error& error,
                              std::string what = "");

 private:
  async::task<core::Result<void>> save_once(std::uint64_t done, bool models);
  async::task<core::Result<void>> write(std::uint64_t done, bool models);
  bool regroups(std::uint64_t done) const;
  std::vector<std::string> stateful_roles() const;

  RunState& run_;
  store::SavePace pace_;
  bool state_lost_ = false;
  bool save_failed_ = false;            // the last save failed
  std::optional<std::uint64_t> saved_;  // updates done
  std::filesystem::path saved_at_;
};

}  // namespace troupe::actors::controller
