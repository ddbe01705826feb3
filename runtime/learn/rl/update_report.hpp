// Makes the report of a policy update: the metrics of its optimiser steps, and the alarm for reward
// hacking. Plain C++, pure.
#pragma once

#include "runtime/learn/loss/objective_stats.hpp"
#include "runtime/learn/rl/rl_state.hpp"
#include "runtime/learn/rl/trainer.hpp"
#include "runtime/learn/rl/update_context.hpp"

#include <cstdint>

namespace troupe::learn {

// `alarm/reward_up_kl_high` is 1 when an update's mean score is above its moving mean and the KL to
// the sampling policy, or to the reference, exceeds these bounds (nats per token).
inline constexpr double kRolloutKlAlarm = 0.1;
inline constexpr double kReferenceKlAlarm = 0.5;

// Sums over the optimiser steps of one update; `lr` is that of the last step. `left_out` counts the
// steps that algo.kl.stop left out.
struct UpdateTotals {
  ObjectiveStats stats;
  std::int64_t steps = 0, skipped = 0, micro_batches = 0, left_out = 0;
  double grad_norm_sum = 0, lr = 0;
  double ptx_nll_sum = 0, aux_sum = 0;
  bool frozen = false;
};

// `state` is the trainer's state before the update, `version` the one after it.
UpdateReport update_report(const TrainerSettings& settings,
                           const RlState& state,
                           const UpdateContext& update,
                           const UpdateTotals& totals,
                           core::Version version);

}  // namespace troupe::learn
