// The trainer's side of `troupe bench exact`: the training forward, with autograd on, over the
// transcript's samples packed in another order, in micro-batches of other sizes and on the other
// number of threads than the engine had. Runs in a process of its own. Memory: three stores of the
// model and one micro-batch's activations.
#pragma once

#include "apps/bench/exact_parts.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe::app {

struct TrainerSide {
  Difference difference;
  std::int64_t micro_batches = 0;
  std::int64_t rows_min = 0, rows_max = 0;  // of a micro-batch
  double grad_norm = 0;                     // of one backward pass, to prove that the graph lives
  std::string planted;                      // the weight that was moved by one ulp; empty = none
};

struct TrainerSideSettings {
  std::filesystem::path model;
  std::filesystem::path transcript;
  std::uint64_t seed = 0;
  bool plant_ulp = false;
};

// Errors: those of reading model and transcript; kNumeric when the backward pass gives no gradient.
core::Result<TrainerSide> run_trainer_side(const TrainerSideSettings& settings);

// Rows of a micro-batch whose kept activations take about `bytes`.
std::int64_t rows_within(const model::ModelSpec& spec, std::int64_t bytes);

}  // namespace troupe::app
