// Scores a batch with immediate retries. A worker that died or did not answer is replaced before
// the next call, so the same batch may then succeed. A hang costs one deadline, a batch at most
// two. A function that raised is not called again, since it would raise again. For a source that is
// away, score_with_retries returns the error and score_patiently waits. With a RewardSource they
// block.
#pragma once

#include "actors/protocol/limits.hpp"
#include "actors/reward/limits.hpp"
#include "actors/reward/reward_calls.hpp"
#include "actors/reward/reward_source.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace troupe::actors::reward {

// Counts of calls and failures, over all batches.
struct RewardTries {
  std::uint64_t calls = 0;
  std::uint64_t hangs = 0;   // calls that ran into the deadline
  std::uint64_t deaths = 0;  // calls during which the worker ended
  std::uint64_t away = 0;    // calls of a source that was away

  void add(const RewardTries& other);
};

// One score a sample. A deadline is tried again once, a lost worker kRewardRetries_max times.
// kPeerLost: the source is away; every other error is final for the batch.
core::Result<std::vector<RewardScore>> score_with_retries(RewardSource& source,
                                                          const std::vector<RewardGroup>& groups,
                                                          core::Duration deadline,
                                                          RewardTries& tries);
// `calls` outlives it.
async::task<RewardCalls::Answer> score_with_retries(RewardCalls* calls,
                                                    std::vector<RewardGroup> groups,
                                                    core::Duration deadline,
                                                    std::shared_ptr<RewardTries> tries);

// For commands without a data role that waits: asks a source that is away again, with growing
// pauses, until it has been away for `away_max` or `stopped` returns true (kInterrupted). Calls
// `say` once when it is away and once when it is back.
struct SourcePatience {
  core::Duration pause_min = actors::limits::kScorerPause_min;
  core::Duration pause_max = actors::limits::kScorerPause_max;
  core::Duration away_max = actors::limits::kRewardWait;
  std::function<bool()> stopped;
  std::function<void(const std::string&)> say;
};
core::Result<std::vector<RewardScore>> score_patiently(RewardSource& source,
                                                       const std::vector<RewardGroup>& groups,
                                                       core::Duration deadline,
                                                       RewardTries& tries,
                                                       const SourcePatience& patience);

}  // namespace troupe::actors::reward
