// What one call of PolicyTrainer::update knows about its groups, and the numbers of one micro-batch
// cut out of it. Plain data on the trainer's thread; lives for one update.
#pragma once

#include "runtime/learn/experience.hpp"
#include "runtime/learn/micro_batch.hpp"
#include "runtime/learn/objective.hpp"
#include "runtime/learn/settings.hpp"
#include "runtime/model/group_plan.hpp"

#include <cstdint>
#include <vector>

namespace troupe::learn {

// Where l_p, the policy at the update's start, comes from (docs/algorithms.md, "The anchor").
enum class AnchorSource {
  kBehaviour,  // every token is of the starting version and the forward is exact: l_p = l_mu
  kCurrent,    // one optimiser step: l_p = sg(l)
  kScored,     // an extra forward before the first step
};

struct UpdateContext {
  const std::vector<TrainGroup>& groups;
  std::vector<std::vector<double>> advantages;  // [group][sample]
  UpdatePlan plan;
  AnchorSource anchor = AnchorSource::kBehaviour;
  std::vector<std::vector<std::vector<float>>> scored;  // [group][sample][token], kScored only
};

AnchorSource anchor_source(bool on_policy, std::int64_t optimiser_steps);

// The groups of a micro-batch as the model takes them; spans into `groups`.
std::vector<model::SampleGroup> sample_groups(const std::vector<TrainGroup>& groups,
                                              const MicroBatch& micro);

// Advantages, weights and log-probs of the micro-batch's tokens, by part, sample, position: the
// order of model::GroupPlan::targets.
TokenBatch token_batch(const AlgoSettings& algo,
                       const UpdateContext& update,
                       const MicroBatch& micro);

// Spreads log-probs in that order over `scored` [group][sample][token].
void scatter_scored(const std::vector<TrainGroup>& groups,
                    const MicroBatch& micro,
                    const std::vector<float>& logprobs,
                    std::vector<std::vector<std::vector<float>>>& scored);

}  // namespace troupe::learn
