// The cycles of `troupe bench attach`: attach, perhaps re-weight, then detach or SIGKILL of the
// process that brought the reward, drawn at random from a seed; sometimes the next reward comes
// before the last has gone. On the benchmark's thread; every wait has the job's limit.
#pragma once

#include "apps/bench/lab_run.hpp"
#include "apps/bench/score_server.hpp"
#include "runtime/core/rng.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe::app {

struct AttachCounts {
  std::vector<double> first_score_ms;  // by cycle, from the start of the command
  std::vector<double> attached_ms;     // until the command said that its reward is in
  std::uint64_t reweights = 0, detaches = 0, kills = 0, overlaps = 0;
};

class AttachCycles {
 public:
  // `limit_s`: of each command and wait.
  AttachCycles(const LabFiles& files,
               const LabRun& run,
               const ScoreServer& server,
               std::uint64_t seed,
               double limit_s)
      : files_(files), run_(run), server_(server), rng_(seed), limit_s_(limit_s) {}

  // Ends with no reward attached.
  core::Result<AttachCounts> go_through(std::uint64_t cycles);

 private:
  struct Guest {
    std::string name;
    LoggedProcess process;
  };
  core::Result<Guest> attach(std::uint64_t cycle);
  core::Result<void> reweight(const std::string& name);
  core::Result<void> end(Guest guest);
  core::Result<void> detach(Guest& guest);
  bool drawn(double share) { return rng_.next_uniform() < share; }

  const LabFiles& files_;
  const LabRun& run_;
  const ScoreServer& server_;
  core::Rng rng_;
  const double limit_s_;
  AttachCounts counts_;
};

}  // namespace troupe::app
