#include "runtime/learn/micro_batch_runner.hpp"

#include "runtime/core/check.hpp"
#include "runtime/learn/step_failure.hpp"
#include "runtime/learn/tensors.hpp"
#include "runtime/model/train_logprobs.hpp"

#include <c10/core/GradMode.h>

#include <cmath>
#include <exception>
#include <limits>
#include <string>

namespace troupe::learn {
namespace {

bool all_finite(const std::vector<double>& values) {
  for (const double value : values) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

ObjectiveStats not_finite() {
  ObjectiveStats stats;
  stats.loss = std::numeric_limits<double>::quiet_NaN();
  return stats;
}

}  // namespace

MicroBatchRunner::MicroBatchRunner(const AlgoSettings& algo,
                                   core::TeamRunner& team,
                                   model::TrainForward& forward)
    : algo_(algo), team_(team), forward_(forward) {}

core::Result<void> MicroBatchRunner::build(const model::PackedWeights& weights,
                                           const std::vector<experience::Group>& groups,
                                           const MicroBatch& micro) {
  const auto samples = sample_groups(groups, micro);
  TROUPE_TRY(model::build_group_plan(samples, weights.spec(), team_.size(), plan_));
  plan_.plan.place(team_.memory());
  TROUPE_CHECK(plan_.plan.rows() == micro.rows && plan_.targets.size() == micro.tokens,
               "the model's plan has the rows and tokens of the micro-batch");
  return {};
}

ObjectiveStats MicroBatchRunner::learn(const model::PackedWeights& weights,
                                       const TokenBatch& batch) {
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

// Without advantages, KL and entropy terms the loss is zero and so is its gradient; what is left
// are the figures, at a third of the cost.
ObjectiveStats MicroBatchRunner::look(const model::PackedWeights& weights,
                                      const TokenBatch& batch) {
  std::vector<float> l(batch.size()), h(batch.size());
  model::score_logprobs(team_, weights, plan_.plan, plan_.targets,
                        static_cast<float>(algo_.temperature), scratch_, l, h);
  const std::vector<double> logprobs(l.begin(), l.end()), entropies(h.begin(), h.end());
  if (!all_finite(logprobs)) return not_finite();
  return observe(algo_, batch, logprobs, entropies);
}

core::Result<ObjectiveStats> MicroBatchRunner::run(const model::PackedWeights& weights,
                                                   const UpdateContext& update,
                                                   const MicroBatch& micro) {
  try {
    TROUPE_TRY(build(weights, update.groups, micro));
    const TokenBatch batch = token_batch(algo_, update, micro, weights.version());
    return micro.learns ? learn(weights, batch) : look(weights, batch);
  } catch (const std::exception& error) {
    return step_failure(error, "in a training step");
  }
}

core::Result<std::vector<float>> MicroBatchRunner::score(const model::PackedWeights& weights,
                                                         const std::vector<experience::Group>& groups,
                                                         const MicroBatch& micro) {
  TROUPE_TRY(build(weights, groups, micro));
  std::vector<float> logprobs(static_cast<std::size_t>(micro.tokens));
  model::score_logprobs(team_, weights, plan_.plan, plan_.targets,
                        static_cast<float>(algo_.temperature), scratch_, logprobs);
  return logprobs;
}

}  // namespace troupe::learn
