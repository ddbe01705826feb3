// The interface by which an engine computes its steps: runs the model over the rows of a plan and
// draws tokens. Engines use a StepRunner; tests and fault injection replace or wrap it. Owned by
// the engine, on its thread.
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
  // Computes a step: writes keys and values into `pool`, and returns the draw of each job of
  // `step`, valid until the next call. The log-prob of a draw is not finite if its logits are not.
  virtual core::Result<std::span<const Draw>> run(const model::PackedWeights& weights,
                                                  StepPlan& step,
                                                  model::KvPool& pool) = 0;
  // Drops recordings that use the addresses of weights or pools, before these are freed.
  virtual void forget_places() = 0;
  // How often a device replayed a recording instead of launching the work anew.
  virtual std::uint64_t replayed() const = 0;
};

}  // namespace troupe::engine
