// Log-probs and values without gradients, on the same forward: the reference role, reward models,
// critics, and the check of the engine against the trainer. Scratch is owned by the caller and
// reused from batch to batch.
#pragma once

#include "runtime/core/team.hpp"
#include "runtime/model/forward.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/head_grad.hpp"
#include "runtime/model/value_head.hpp"

#include <span>
#include <vector>

namespace troupe::model {

struct ScoreScratch {
  ForwardScratch forward;
  KvPool pool;
  HeadScratch head;
  ValueScratch values;
};

// logprobs[i] of target i at `temperature`; also the entropies of the targets' distributions when
// `entropies` is not empty. Spans have targets.size() elements.
void score_logprobs(core::TeamRunner& team,
                    const PackedWeights& weights,
                    const ForwardPlan& plan,
                    const TokenTargets& targets,
                    float temperature,
                    ScoreScratch& scratch,
                    std::span<float> logprobs,
                    std::span<float> entropies = {});

// Of a model with a score head: values[i] at row plan.logit_rows[i]; one for each logit row. They
// are as the head gives them, not normalised by the spec's mean and deviation.
void score_values(core::TeamRunner& team,
                  const PackedWeights& weights,
                  const ForwardPlan& plan,
                  ScoreScratch& scratch,
                  std::span<float> values);

// The same with scratch of its own.
std::vector<float> score_logprobs(core::TeamRunner& team,
                                  const PackedWeights& weights,
                                  const ForwardPlan& plan,
                                  const TokenTargets& targets,
                                  float temperature);

}  // namespace troupe::model
