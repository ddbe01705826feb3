// The first half of an update: checks its groups, decides where l_p comes from, computes advantages
// and masks, and plans the micro-batches. On the trainer's thread.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/learn/advantage/reward_shaping.hpp"
#include "runtime/learn/rl/trainer.hpp"
#include "runtime/learn/rl/update_context.hpp"

#include <functional>
#include <vector>

namespace troupe::learn {

class RankGroup;

// Error kConfig, naming the key, for a setting that makes no sense. The configuration has narrower
// ranges.
core::Result<void> check_settings(const TrainerSettings& settings);

// Log-probs of a plan's tokens under the weights that the update starts from.
using ScoreStart = std::function<core::Result<TokenTable<float>>(
    const std::vector<experience::Group>& groups, const UpdatePlan& plan)>;

// `start`: version of the weights that the update starts from. `score`: called only if l_p needs an
// extra forward pass. Adds the scores to `moments` if the normaliser is on. `ranks`: null for one
// process. Errors: those of check_experience, update_advantages, a user's own advantages,
// plan_update and `score`; kConfig for a pair that no micro-batch holds.
core::Result<UpdateContext> prepare_update(const TrainerSettings& settings,
                                           core::Version start,
                                           std::vector<experience::Group> groups,
                                           const ScoreStart& score,
                                           RunningMoments& moments,
                                           RankGroup* ranks = nullptr);

}  // namespace troupe::learn
