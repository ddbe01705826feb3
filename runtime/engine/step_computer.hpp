// Computes the steps of an engine: runs the model over the rows of a plan and draws tokens. Engines
// use a StepRunner; tests and fault injection replace or wrap it. Owned by the engine, on its
// thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/engine/sampler.hpp"
#include "runtime/engine/step_plan.hpp"
#include "runtime/model/kv_pool.hpp"
#include "runtime/model/packed.hpp"

#include <cstdint>
#include <span>

namespace troupe::engine {

class StepComputer {
 public:
  virtual ~StepComputer() = default;
  // Keys and values go to `pool`; returns the draw of each job of `step`, good until the next call.
  // The log-prob of a draw is not finite when its logits are not.
  virtual core::Result<std::span<const Draw>> run(const model::PackedWeights& weights,
                                                  StepPlan& step,
                                                  model::KvPool& pool) = 0;
  // Drops recordings that point to weights or pools, before these are freed or replaced.
  virtual void forget_places() = 0;
  // Steps that a device did from a recording.
  virtual std::uint64_t replayed() const = 0;
};

}  // namespace troupe::engine
