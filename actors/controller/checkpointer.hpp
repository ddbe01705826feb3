// The checkpoints of a run: policy, critic and data write their state into one folder, which the
// listener commits. Knows whether the roles that hold state are still there, and saves a last time
// when a run ends early. Part of the controller, on its strand. One save at a time.
#pragma once

#include "actors/controller/run_state.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

class Checkpointer {
 public:
  // `run` outlives it.
  explicit Checkpointer(RunState& run) : run_(run) {}

  // Puts the roles into the state of a checkpoint.
  async::task<core::Result<void>> load(std::string folder);
  // The state after `done` updates; `models`: with the models as folders beside it.
  async::task<core::Result<void>> save(std::uint64_t done, bool models);
  // The error that a run ends with, once its last committed update is saved, or why it is not.
  async::task<core::Result<void>> save_last(core::Error error);

  // Updates at the newest checkpoint that was made here.
  const std::optional<std::uint64_t>& saved() const noexcept { return saved_; }
  // The last committed update is in no checkpoint.
  bool unsaved() const;

  bool holds_state(const std::string& peer) const;
  // Policy, critic or data is gone, and what the run has learned since its checkpoint with it.
  bool state_lost() const noexcept { return state_lost_; }
  void lose_state() noexcept { state_lost_ = true; }
  // The failure of a call to a role that holds state.
  core::Failure failure_of(core::Error error);

 private:
  async::task<core::Result<void>> write(std::uint64_t done, bool models);
  std::vector<std::string> stateful_roles() const;

  RunState& run_;
  bool state_lost_ = false;
  bool save_failed_ = false;            // the last try
  std::optional<std::uint64_t> saved_;  // updates done
  std::filesystem::path saved_at_;
};

}  // namespace troupe::actors
