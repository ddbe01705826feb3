// Which errors of a reward are worth another try at once: a worker that died or did not answer has
// been replaced by the time of the next call, so the same batch may well succeed. One hang costs
// one deadline and one batch at most two. A function that raised would raise again: it is not
// asked. A source that is away is left to whoever can wait for it. Runs on the reward role's device
// thread; blocks.
#pragma once

#include "actors/limits.hpp"
#include "actors/reward/reward_source.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace troupe::actors {

// What the tries cost, over all batches.
struct RewardTries {
  std::uint64_t calls = 0;
  std::uint64_t hangs = 0;   // calls that ran into the deadline
  std::uint64_t deaths = 0;  // calls during which the worker ended
  std::uint64_t away = 0;    // calls of a source that was away
};

// One score a sample. A deadline is tried again once, a lost worker kRewardRetries_max times.
// kPeerLost: the source is away; every other error has judged the batch.
core::Result<std::vector<RewardScore>> score_with_retries(RewardSource& source,
                                                          const std::vector<RewardGroup>& groups,
                                                          core::Duration deadline,
                                                          RewardTries& tries);

// For commands that have nobody else to wait: a source that is away is asked again, with growing
// pauses, until it has been away for `away_max` or `stopped` says so (kInterrupted). `say` hears
// once that it is away and once that it is back.
struct SourcePatience {
  core::Duration pause_min = limits::kScorerPause_min;
  core::Duration pause_max = limits::kScorerPause_max;
  core::Duration away_max = limits::kRewardWait;
  std::function<bool()> stopped;
  std::function<void(const std::string&)> say;
};
core::Result<std::vector<RewardScore>> score_patiently(RewardSource& source,
                                                       const std::vector<RewardGroup>& groups,
                                                       core::Duration deadline,
                                                       RewardTries& tries,
                                                       const SourcePatience& patience);

}  // namespace troupe::actors
