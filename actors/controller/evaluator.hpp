// Runs evaluations: has held-out problems sampled by the weights of exactly one version. The
// trainer waits meanwhile, so no newer weights are published; training rollouts go on. What an
// earlier life of the run sampled is in the experience log. Part of the controller, on its strand.
#pragma once

#include "actors/controller/checkpointer.hpp"
#include "actors/controller/fleet.hpp"
#include "actors/controller/run_state.hpp"

namespace troupe::actors::controller {

class Evaluator {
 public:
  // All outlive it.
  Evaluator(RunState& run, Fleet& fleet, Checkpointer& checkpointer)
      : run_(run), fleet_(fleet), checkpointer_(checkpointer) {}

  // Evaluates the policy after `done` updates: greedy, then sampled. A policy that has learned from
  // more already cannot be: the results are taken from the experience log. kPeerLost: they are not
  // there, so policy and critic must start again.
  async::task<core::Result<void>> run(std::uint64_t done);

 private:
  async::task<core::Result<void>> evaluate(std::uint64_t done, bool greedy);
  void take(const GroupStatuses& statuses, EvaluationReport& report) const;
  async::task<core::Result<void>> commit(std::uint64_t update, std::uint64_t done);
  async::task<core::Result<void>> commit_once(std::uint64_t update, std::uint64_t done);
  async::task<core::Result<GroupStatuses>> settled_groups(std::uint64_t update);

  RunState& run_;
  Fleet& fleet_;
  Checkpointer& checkpointer_;
};

}  // namespace troupe::actors::controller
