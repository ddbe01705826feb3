// Runs single micro-batches through the model: with gradients, or only to look. The one place of
// the trainer that meets LibTorch; its exceptions end here. Owned by the trainer, used from its
// thread; keeps activations and scratch from batch to batch (bound: micro_tokens_max rows).
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/objective_stats.hpp"
#include "runtime/learn/update_context.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/train_graph.hpp"

#include <vector>

namespace troupe::learn {

class MicroBatchRunner {
 public:
  // All outlive the runner.
  MicroBatchRunner(const AlgoSettings& algo, core::TeamRunner& team, model::TrainForward& forward);

  // Forward, loss and, when the micro-batch learns and the loss is finite, backward into `grads`.
  // A loss or log-prob that is not finite comes back as a loss that is not.
  core::Result<ObjectiveStats> run(const model::PackedWeights& weights,
                                   const UpdateContext& update,
                                   const MicroBatch& micro);

  // Log-probs of the micro-batch's tokens under `weights`, without gradients.
  core::Result<std::vector<float>> score(const model::PackedWeights& weights,
                                         const std::vector<experience::Group>& groups,
                                         const MicroBatch& micro);

 private:
  core::Result<void> build(const model::PackedWeights& weights,
                           const std::vector<experience::Group>& groups,
                           const MicroBatch& micro);
  ObjectiveStats learn(const model::PackedWeights& weights, const TokenBatch& batch);
  ObjectiveStats look(const model::PackedWeights& weights, const TokenBatch& batch);

  const AlgoSettings& algo_;
  core::TeamRunner& team_;
  model::TrainForward& forward_;
  model::GroupPlan plan_;
  model::ScoreScratch scratch_;
};

}  // namespace troupe::learn
