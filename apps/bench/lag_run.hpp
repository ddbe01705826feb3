// One run of `troupe bench lag`: a policy learns the toy task from samples that the weights of
// exactly `lag` updates ago drew. The real engine samples, the real trainers learn; all in the
// caller's thread with a team of one. Bound: `lag` + 2 copies of the tiny model's panels.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::app {

struct LagJob {
  std::string arm;  // one of lag_arms()
  std::int64_t lag = 0;
  std::uint64_t seed = 1;
  double lr = 1e-3;
  std::int64_t updates = 400;
};

struct LagResult {
  double final_score = 0;  // mean score of fresh samples of the last weights
  double area = 0;         // mean over the run of such scores, at even distances
  double ess = 0, rho_max = 0, masked_share = 0, kl_rollout = 0;  // means over the updates
  double seconds = 0;
};

// ppo          clipped ratio to the policy at the update's start, no correction
// decoupled    times min(rho, 2)
// a3po         the same with the interpolated anchor
// vtrace       decoupled, advantages and targets by V-trace from a critic
// online_dpo   best against worst sample in the DPO loss, reference the first weights
std::vector<std::string_view> lag_arms();

core::Result<LagResult> run_lag(const LagJob& job);

}  // namespace troupe::app
