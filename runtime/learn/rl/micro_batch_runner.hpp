// Runs single micro-batches of the policy through its model, with gradients or for metrics alone.
// Turns LibTorch's exceptions into errors. Keeps activations and scratch from batch to batch
// (bound: micro_tokens_max rows). Part of trainer.cpp, on whose thread it runs; numeric work on the
// team.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/loss/objective.hpp"
#include "runtime/learn/loss/objective_stats.hpp"
#include "runtime/learn/rl/update_context.hpp"
#include "runtime/learn/torch/step_failure.hpp"
#include "runtime/learn/torch/tensors.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/train_logprobs.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <vector>

namespace troupe::learn {

class MicroBatchRunner {
 public:
  // All outlive the runner.
  MicroBatchRunner(const AlgoSettings& algo, core::TeamRunner& team, model::TrainForward& forward)
      : algo_(algo), team_(team), forward_(forward) {}

  // Forward pass, loss and, when the micro-batch learns and the loss is finite, backward pass into
  // the gradients. If the loss or a log-prob is not finite, neither is the returned loss.
  core::Result<ObjectiveStats> run(const model::PackedWeights& weights,
                                   const UpdateContext& update,
                                   const MicroBatch& micro) {
    try {
      TROUPE_TRY(plan_micro_batch(update.groups, micro, weights.spec(), team_, plan_));
      const TokenBatch batch = token_batch(algo_, update, micro, weights.version());
      return micro.learns ? learn(weights, batch) : look(weights, batch);
    } catch (const std::exception& error) {
      return step_failure(error, "in a training step");
    }
  }

  // Log-probs of the micro-batch's tokens under `weights`, without gradients, in plan order.
  core::Result<std::vector<float>> score(const model::PackedWeights& weights,
                                         const std::vector<experience::Group>& groups,
                                         const MicroBatch& micro) {
    TROUPE_TRY(plan_micro_batch(groups, micro, weights.spec(), team_, plan_));
    std::vector<float> logprobs(static_cast<std::size_t>(micro.tokens));
    model::score_logprobs(team_, weights, plan_.plan, plan_.targets,
                          static_cast<float>(algo_.temperature), scratch_, logprobs);
    return logprobs;
  }

 private:
  static bool all_finite(const std::vector<double>& values) {
    return std::all_of(values.begin(), values.end(),
                       [](double value) { return std::isfinite(value); });
  }

  static ObjectiveStats not_finite() {
    ObjectiveStats stats;
    stats.loss = std::numeric_limits<double>::quiet_NaN();
    return stats;
  }

  ObjectiveStats learn(const model::PackedWeights& weights, const TokenBatch& batch) {
    const c10::AutoGradMode with_grad(true);
    const auto temperature = static_cast<float>(algo_.temperature);
    const auto out = forward_.logprobs(weights, plan_.plan, plan_.targets, temperature, true);
    const auto logprobs = values_of(out.logprobs);
    const auto entropies = values_of(out.entropies);
    const at::Tensor loss = policy_loss(algo_, batch, out.logprobs, out.entropies);
    const double value = loss.item<double>();
    if (!std::isfinite(value) || !all_finite(logprobs)) return not_finite();
    loss.backward();
    ObjectiveStats stats = observe(algo_, batch, logprobs, entropies);
    stats.loss = value;
    return stats;
  }

  // For micro-batches without advantages, KL and entropy terms: loss and gradient are zero, so this
  // computes only the statistics, at a third of the cost.
  ObjectiveStats look(const model::PackedWeights& weights, const TokenBatch& batch) {
    std::vector<float> l(batch.size()), h(batch.size());
    model::score_logprobs(team_, weights, plan_.plan, plan_.targets,
                          static_cast<float>(algo_.temperature), scratch_, l, h);
    const std::vector<double> logprobs(l.begin(), l.end()), entropies(h.begin(), h.end());
    if (!all_finite(logprobs)) return not_finite();
    return observe(algo_, batch, logprobs, entropies);
  }

  const AlgoSettings& algo_;
  core::TeamRunner& team_;
  model::TrainForward& forward_;
  model::GroupPlan plan_;
  model::ScoreScratch scratch_;
};

}  // namespace troupe::learn
