// The data of one update between PolicyTrainer::prepare and learn, and the functions that cut one
// micro-batch's inputs out of it. Plain data on the trainer's thread; lives for one update.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/team.hpp"
#include "runtime/experience/group.hpp"
#include "runtime/learn/experience_check.hpp"
#include "runtime/learn/micro_batch.hpp"
#include "runtime/learn/objective.hpp"
#include "runtime/learn/settings.hpp"
#include "runtime/learn/update_advantages.hpp"
#include "runtime/model/group_plan.hpp"

#include <cstdint>
#include <vector>

namespace troupe::learn {

// Where l_p comes from (docs/algorithms.md, "The anchor").
enum class AnchorSource {
  kBehaviour,     // l_mu: asked for, or every token is of the starting version
  kCurrent,       // one optimiser step: l_p = sg(l)
  kScored,        // an extra forward before the first step
  kInterpolated,  // between l_mu and sg(l), by how old the token is
};

struct UpdateContext {
  std::vector<experience::Group> groups;
  Staleness staleness = {};
  double score = 0;         // mean over the samples, before shaping
  double kl_of_sample = 0;  // mean over the samples of their summed KL; 0 without a reference
  TokenTable<double> advantages;
  TokenTable<float> returns = {};  // for the critic; empty without one
  UpdatePlan plan;
  AnchorSource anchor = AnchorSource::kBehaviour;
  core::Version start = 0;   // version of the weights that the update starts from
  TokenTable<float> scored;  // l_p of an extra forward; empty where none was needed
  TokenTable<double> keep;   // 0 for tokens that the correction masks; empty: no mask
  std::int64_t pairs = 0;    // groups with a best and a worst sample, of objectives over pairs
};

// `start_needed`: advantages or masks read l_p before the first step, so sg(l) cannot serve.
AnchorSource anchor_source(Chosen<Objective> objective,
                           bool on_policy,
                           std::int64_t optimiser_steps,
                           bool start_needed);

// Whether advantages or masks are computed from l_p.
bool start_needed(const AlgoSettings& algo);

// 1 per token, or 0 where the second moment masks it: over all tokens of the update, so that the
// mask does not depend on how it is cut, at l_p.
TokenTable<double> update_mask(const std::vector<experience::Group>& groups,
                               const TokenTable<float>& scored,
                               double tau);

// The groups of a micro-batch as the model takes them; spans into `groups`.
std::vector<model::SampleGroup> sample_groups(const std::vector<experience::Group>& groups,
                                              const MicroBatch& micro);

// The plan of a micro-batch in the memory of the team that will run it. Errors: those of
// model::build_group_plan.
core::Result<void> plan_micro_batch(const std::vector<experience::Group>& groups,
                                    const MicroBatch& micro,
                                    const model::ModelSpec& spec,
                                    core::TeamRunner& team,
                                    model::GroupPlan& out);

// Advantages, weights and log-probs of the micro-batch's tokens, by part, sample, position: the
// order of model::GroupPlan::targets. `now`: version of the weights, for the interpolated anchor.
TokenBatch token_batch(const AlgoSettings& algo,
                       const UpdateContext& update,
                       const MicroBatch& micro,
                       core::Version now);

// Spreads log-probs in that order over `scored` [group][sample][token].
void scatter_scored(const std::vector<experience::Group>& groups,
                    const MicroBatch& micro,
                    const std::vector<float>& logprobs,
                    TokenTable<float>& scored);

}  // namespace troupe::learn
