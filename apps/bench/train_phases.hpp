// The parts of an update, timed one by one on the pieces that the trainer is made of: forward and
// backward of every micro-batch, and the optimiser's step with what belongs to it. Runs on the
// caller's thread and the given team. Memory: four stores of the model, packed weights and one
// micro-batch, as in the trainer.
#pragma once

#include "apps/bench/train_job.hpp"

#include <vector>

namespace troupe::app {

struct TrainPhases {
  double forward_s = 0;
  double backward_s = 0;
  double optimizer_s = 0;  // gradients zeroed, their norm, AdamW, panels packed again
};

// Medians over `repetitions`, after one that is not counted.
core::Result<TrainPhases> measure_phases(const TrainJob& job,
                                         const learn::TrainerSettings& settings,
                                         const std::vector<experience::Group>& groups,
                                         int repetitions,
                                         core::TeamRunner& team);

}  // namespace troupe::app
