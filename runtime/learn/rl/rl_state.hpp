// The state that the policy's trainer keeps between updates besides weights and moments: reward
// normaliser, KL coefficient, counts and the cursor of the ptx texts. A value type; saved next to
// the weights and restored to the same bits.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/learn/advantage/reward_shaping.hpp"

#include <cstdint>
#include <filesystem>

namespace troupe::learn {

struct RlState {
  std::uint64_t updates = 0;     // updates done, frozen ones included
  RunningMoments moments;        // of all scores, with reward.normalize running
  double kl_coef = 0;            // current coefficient; adapts under algo.kl.target
  double score_trend = 0;        // moving mean of the updates' mean scores, for the alarm
  std::uint64_t ptx_cursor = 0;  // next text of data.pretrain_dataset

  // rl_state.json in `folder`. Errors of load: kNotFound, kData.
  core::Result<void> save(const std::filesystem::path& folder) const;
  static core::Result<RlState> load(const std::filesystem::path& folder);
};

}  // namespace troupe::learn
