// Runs the forward and backward passes of training without an optimiser, so that benchmarks can
// measure them; the loss is the sum of the log-probs. Runs on the owner's thread, numeric work on
// the team; memory: the activations of one call.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"

#include <memory>
#include <span>

namespace troupe::learn {

class TrainPass {
 public:
  // backward() adds to `grads`. The contract is otherwise that of model::TrainForward.
  static std::unique_ptr<TrainPass> create(core::TeamRunner& team,
                                           const model::ParamStore& master,
                                           model::ParamStore& grads);
  virtual ~TrainPass() = default;

  // Log-probs [targets] under `weights`. They and the graph that backward() needs live until the
  // next call. Error kInternal: LibTorch failed, or built no graph.
  virtual core::Result<std::span<const float>> logprobs(const model::PackedWeights& weights,
                                                        const model::ForwardPlan& plan,
                                                        const model::TokenTargets& targets,
                                                        float temperature,
                                                        bool want_entropy) = 0;

  // Adds the gradient of `scale` * (sum of the last call's log-probs). At most once per logprobs().
  virtual core::Result<void> backward(float scale) = 0;
};

}  // namespace troupe::learn
