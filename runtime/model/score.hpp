// Log-probs and values without gradients, from the same forward pass as the engine's and the
// trainer's. Used by the reference role, reward models, critics, trainers (anchor and reference
// log-probs), and checks of the engine. The caller owns the scratch and reuses it from batch to
// batch.
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

// Writes the log-prob of target i at `temperature` to logprobs[i]. If `entropies` is not empty, it
// receives the entropies of the targets' distributions. Spans have targets.size() elements.
void score_logprobs(core::TeamRunner& team,
                    const PackedWeights& weights,
                    const ForwardPlan& plan,
                    const TokenTargets& targets,
                    float temperature,
                    ScoreScratch& scratch,
                    std::span<float> logprobs,
                    std::span<float> entropies = {});

// The inputs of the head for plan.logit_rows, [logit rows, hidden], in the scratch: what a
// teacher's head reads (divergence.hpp).
const float* score_head_in(core::TeamRunner& team,
                           const PackedWeights& weights,
                           const ForwardPlan& plan,
                           ScoreScratch& scratch);

// score_logprobs at temperature 1, and the divergence from the teacher by target.
void score_divergences(core::TeamRunner& team,
                       const PackedWeights& weights,
                       const ForwardPlan& plan,
                       const TokenTargets& targets,
                       const TeacherRows& teacher,
                       ScoreScratch& scratch,
                       std::span<float> logprobs,
                       std::vector<DivergenceRow>& divergences);

// For a model with a score head: writes the value at row plan.logit_rows[i] to values[i], one per
// logit row. The values are raw, not normalised by the spec's mean and deviation.
void score_values(core::TeamRunner& team,
                  const PackedWeights& weights,
                  const ForwardPlan& plan,
                  ScoreScratch& scratch,
                  std::span<float> values);

// Returns the log-probs of the targets in a new vector; uses scratch of its own.
std::vector<float> score_logprobs(core::TeamRunner& team,
                                  const PackedWeights& weights,
                                  const ForwardPlan& plan,
                                  const TokenTargets& targets,
                                  float temperature);

}  // namespace troupe::model
