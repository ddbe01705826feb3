// The gang of `troupe bench train --ranks R`: R processes of this program, of which the first one
// measures. Owned by the benchmark, on its thread.
#pragma once

#include "apps/bench/temporary_folder.hpp"
#include "apps/bench/train_steps.hpp"
#include "runtime/collective/collectives.hpp"
#include "runtime/core/child_process.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace troupe::bench {

class TrainRanks {
 public:
  // Starts the other ranks, if this process is rank 0, and waits until all are connected. The job
  // then has the gang. With one rank there is none. Errors: kConfig (a rank that does not exist),
  // and those of the gang.
  static core::Result<std::unique_ptr<TrainRanks>> start(TrainJob& job);

  // Adds up what each rank's process has used and sent. Every rank calls it.
  core::Result<void> add_up(TrainFigures& figures);
  // Waits until the other processes have ended.
  void wait();

 private:
  core::Result<void> start_others(const TrainJob& job);

  std::optional<TemporaryFolder> folder_;
  std::vector<core::ChildProcess> others_;
  std::unique_ptr<collective::Collectives> gang_;
};

// The fewest bytes that all ranks can send in a step: in each round, every rank sends its sum to
// the owners; and once the gradient or new weights go to all, or at stage 3 the weights for each
// pass, forward and, but for the embedding, back.
double least_bytes(const TrainJob& job, const TrainFigures& figures);

}  // namespace troupe::bench
