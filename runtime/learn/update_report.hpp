// What an update of the policy reports: the metrics of its optimiser steps, and the alarm for a
// reward that is being gamed. Plain C++, pure.
#pragma once

#include "runtime/learn/objective_stats.hpp"
#include "runtime/learn/rl_state.hpp"
#include "runtime/learn/trainer.hpp"
#include "runtime/learn/update_context.hpp"

#include <cstdint>

namespace troupe::learn {

// An update's mean score that beats the trend while the policy is this far (nats a token) from the
// sampler, or from the reference, raises `alarm/reward_up_kl_high`.
inline constexpr double kRolloutKlAlarm = 0.1;
inline constexpr double kReferenceKlAlarm = 0.5;

// What the optimiser steps of one update add up to.
struct UpdateTotals {
  ObjectiveStats stats;
  std::int64_t steps = 0, skipped = 0, micro_batches = 0, left_out = 0;
  double grad_norm_sum = 0, lr = 0;
  double ptx_nll_sum = 0, aux_sum = 0;
  bool frozen = false;
};

// `state` is that before the update.
UpdateReport update_report(const TrainerSettings& settings,
                           const RlState& state,
                           const UpdateContext& update,
                           const UpdateTotals& totals,
                           core::Version version);

}  // namespace troupe::learn
