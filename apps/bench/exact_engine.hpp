// The engine's side of `troupe bench exact` as a whole: loads the model, runs all rounds, and
// checks the log-probs once more with the scorer without gradients, in the same process. Runs on
// the caller's thread with teams of one and two. Memory: packed weights twice, one engine, one
// micro-batch.
#pragma once

#include "apps/bench/exact_parts.hpp"
#include "apps/bench/exact_rounds.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>

namespace troupe::app {

// The model's weights packed, and others of its shape.
struct TwoWeights {
  std::shared_ptr<const model::PackedWeights> weights, other;
};
core::Result<TwoWeights> load_two_weights(const std::filesystem::path& folder,
                                          core::TeamRunner& team);

struct EngineSide {
  Transcript transcript;
  Coverage coverage;
  Difference scorer;  // between engine and scorer
  std::int64_t rounds = 0;
  double engine_s = 0, scorer_s = 0;
};

core::Result<EngineSide> run_engine_side(const std::filesystem::path& model,
                                         std::int64_t tokens,
                                         std::uint64_t seed);

}  // namespace troupe::app
