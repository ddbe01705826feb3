// The step of an update at which a user's own advantages take the place of the estimator's
// (docs/algorithms.md, "From scores to advantages", step 9). On the trainer's thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/learn/advantage/advantage_source.hpp"
#include "runtime/learn/rl/update_context.hpp"

namespace troupe::learn {

class RankGroup;

// The arrays of an update whose anchors and advantages are known.
UpdateArrays arrays_of(const UpdateContext& update);

// Replaces the update's advantages, and sets its token weights, by what `source` computes. With
// ranks rank 0 asks its source, and all get the same numbers; the others' sources are null. Errors:
// those of the source.
core::Result<void> apply_own_advantage(AdvantageSource* source,
                                       RankGroup* ranks,
                                       UpdateContext& update);

}  // namespace troupe::learn
