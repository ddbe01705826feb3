// The data of one update between PolicyTrainer::prepare and learn, and the functions that cut one
// micro-batch's inputs out of it. Plain data on the trainer's thread; lives for one update.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/team.hpp"
#include "runtime/experience/group.hpp"
#include "runtime/experience/row.hpp"
#include "runtime/learn/advantage/update_advantages.hpp"
#include "runtime/learn/loss/objective.hpp"
#include "runtime/learn/rl/experience_check.hpp"
#include "runtime/learn/rl/micro_batch.hpp"
#include "runtime/learn/settings.hpp"
#include "runtime/model/group_plan.hpp"

#include <cstdint>
#include <vector>

namespace troupe::learn {

// Where l_p comes from (docs/algorithms.md, "The anchor").
enum class AnchorSource {
  kBehaviour,     // l_mu: the objective asks for it, or the starting version sampled every token
  kCurrent,       // sg(l): the update has one optimiser step
  kScored,        // an extra forward pass before the first step
  kInterpolated,  // between l_mu and sg(l), by how old the token is
};

struct UpdateContext {
  std::vector<experience::Group> groups;
  Staleness staleness = {};
  double score = 0;         // mean over the samples, before shaping
  double kl_of_sample = 0;  // mean over the samples of their summed KL; 0 if algo.kl.init_coef is 0
  double kl_teacher = 0;    // mean over the tokens of l_mu - log p_teacher
  TokenTable<double> advantages;
  TokenTable<float> returns = {};  // the critic's value targets; empty without a critic
  UpdatePlan plan;
  AnchorSource anchor = AnchorSource::kBehaviour;
  core::Version start = 0;        // version of the weights that the update starts from
  TokenTable<float> scored = {};  // l_p of an extra forward pass; empty if there was none
  TokenTable<double> keep = {};   // 0 for tokens that the correction masks, else 1; empty: no mask
  TokenTable<double> token_weights = {};  // a user's own factors of the loss; empty: all 1
  std::int64_t pairs = 0;  // pairs of a best and a worst sample to learn from (online_dpo)
};

// Chooses where l_p comes from. `start_needed`: something reads l_p before the first step, so sg(l)
// of that step comes too late.
AnchorSource anchor_source(Chosen<Objective> objective,
                           bool on_policy,
                           std::int64_t optimiser_steps,
                           bool start_needed);

// Whether something reads l_p before the first step: the KL in the reward, a steered KL
// coefficient, the estimator, the correction's mask, or a user's own advantages.
bool start_needed(const AlgoSettings& algo);

// Whether an update of so many optimiser steps has an extra forward pass before the first, for l_p.
// `on_policy`: its starting version sampled every token.
bool scores_start(const AlgoSettings& algo, bool on_policy, std::int64_t optimiser_steps);

// The mask of m2po for every token of the update: 1 to keep it, 0 to drop it (second_moment_mask
// over all tokens at l_p, so the mask does not depend on how the update is cut). `scored` holds
// l_p, or is empty if l_p = l_mu; `tau` is the bound of the mean.
TokenTable<double> update_mask(const std::vector<experience::Group>& groups,
                               const TokenTable<float>& scored,
                               double tau);

// The groups of a micro-batch as the model takes them: spans into the update's groups, and into
// `rows` for samples with contexts. Movable, not copied.
struct SampleRows {
  std::vector<model::SampleGroup> groups;
  std::vector<experience::Row> rows;
};
SampleRows sample_rows(const std::vector<experience::Group>& groups, const MicroBatch& micro);

// Builds the forward plan of a micro-batch in the memory of the team that will run it. Errors:
// those of model::build_group_plan.
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

// Copies a micro-batch's numbers, log-probs or the critic's values in the order of token_batch, to
// their places in `scored` [group][sample][token].
void scatter_scored(const std::vector<experience::Group>& groups,
                    const MicroBatch& micro,
                    const std::vector<float>& logprobs,
                    TokenTable<float>& scored);

}  // namespace troupe::learn
