// What the policy's trainer remembers between updates besides weights and moments: the reward
// normaliser, the KL coefficient, counts and the cursor of the ptx texts. A value type; saved
// beside the weights and restored to the same bits.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/learn/reward_shaping.hpp"

#include <cstdint>
#include <filesystem>

namespace troupe::learn {

struct RlState {
  std::uint64_t updates = 0;     // learnt from, frozen ones included
  RunningMoments moments;        // of all scores, with reward.normalize running
  double kl_coef = 0;            // now; moves with algo.kl.target
  double score_trend = 0;        // moving mean of the updates' mean scores, for the alarm
  std::uint64_t ptx_cursor = 0;  // next text of data.pretrain_dataset

  // rl_state.json in `folder`. Errors of load: kNotFound, kData.
  core::Result<void> save(const std::filesystem::path& folder) const;
  static core::Result<RlState> load(const std::filesystem::path& folder);
};

}  // namespace troupe::learn
