// Runs evaluations: has held-out problems sampled by the weights of exactly one version. The
// trainer waits meanwhile, so no newer weights are published; training rollouts go on. Part of the
// controller, on its strand.
#pragma once

#include "actors/controller/fleet.hpp"
#include "actors/controller/run_state.hpp"

namespace troupe::actors {

class Evaluator {
 public:
  // Both outlive it.
  Evaluator(RunState& run, Fleet& fleet) : run_(run), fleet_(fleet) {}

  // Evaluates the policy after `done` updates: greedy, then sampled.
  async::task<core::Result<void>> run(std::uint64_t done);

 private:
  async::task<core::Result<void>> evaluate(std::uint64_t done, bool greedy);
  async::task<core::Result<void>> commit(std::uint64_t update, std::uint64_t done);
  async::task<core::Result<void>> commit_once(std::uint64_t update, std::uint64_t done);
  async::task<core::Result<GroupStatuses>> settled_groups(std::uint64_t update);

  RunState& run_;
  Fleet& fleet_;
};

}  // namespace troupe::actors
