// What `troupe bench exact` does besides sampling: the trainer's side, and the soak test.
#pragma once

#include "apps/bench/exact_teams.hpp"
#include "runtime/core/result.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>

namespace troupe::bench {

// The trainer's side of `troupe bench exact`: the training forward, with autograd on, over the
// transcript's samples packed in another order, in micro-batches of other sizes and on the other
// number of threads than the engine had. Runs in a process of its own. Memory: three stores of the
// model and one micro-batch's activations.
//
// Returns the object "trainer" of the benchmark's JSON line. `seed`: of the order of samples.
// `plant_ulp`: first moves one weight by one unit in the last place, a difference that must be
// found. Errors: those of reading model and transcript; kNumeric when the backward pass gives no
// gradient.
core::Result<nlohmann::ordered_json> run_trainer_side(const std::filesystem::path& model,
                                                      const ExactPlace& place,
                                                      const std::filesystem::path& transcript,
                                                      std::uint64_t seed,
                                                      bool plant_ulp);

// The soak test `troupe bench exact --soak SECONDS`: one engine, on all cores or a GPU, under
// random submits, aborts, pauses, sleeps, changes of weights and floods of requests beyond its
// queue. Every sample must equal that of an undisturbed engine. At the end every KV block must be
// free, and the process's memory may have grown by 3 % and 12 MiB at most. Runs on the caller's
// thread. Memory: packed weights twice, one engine.
struct SoakReport {
  nlohmann::ordered_json figures;
  // Errors: kInternal for a leaked block or grown memory, kNumeric for a sample that differs.
  core::Result<void> verdict;
};

core::Result<SoakReport> run_soak(const std::filesystem::path& model,
                                  const ExactPlace& place,
                                  double seconds,
                                  std::uint64_t seed);

}  // namespace troupe::bench
