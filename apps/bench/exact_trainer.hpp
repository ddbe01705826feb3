// The trainer's side of `troupe bench exact`: the training forward, with autograd on, over the
// transcript's samples packed in another order, in micro-batches of other sizes and on the other
// number of threads than the engine had. Runs in a process of its own. Memory: three stores of the
// model and one micro-batch's activations.
#pragma once

#include "apps/bench/exact_teams.hpp"
#include "runtime/core/result.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>

namespace troupe::app {

// Returns the object "trainer" of the benchmark's JSON line. `seed`: of the order of samples.
// `plant_ulp`: first moves one weight by one unit in the last place, a difference that must be
// found. Errors: those of reading model and transcript; kNumeric when the backward pass gives no
// gradient.
core::Result<nlohmann::ordered_json> run_trainer_side(const std::filesystem::path& model,
                                                      const ExactPlace& place,
                                                      const std::filesystem::path& transcript,
                                                      std::uint64_t seed,
                                                      bool plant_ulp);

}  // namespace troupe::app
