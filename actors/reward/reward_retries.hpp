// Which errors of a reward are worth another try: a worker that died or did not answer has been
// replaced by the time of the next call, so the same batch may well succeed. One hang costs one
// deadline and one batch at most two. A function that raised would raise again: it is not asked.
// Runs on the reward role's device thread; blocks.
#pragma once

#include "actors/reward/reward_source.hpp"

#include <cstdint>
#include <vector>

namespace troupe::actors {

// What the tries cost, over all batches.
struct RewardTries {
  std::uint64_t calls = 0;
  std::uint64_t hangs = 0;   // calls that ran into the deadline
  std::uint64_t deaths = 0;  // calls during which the worker ended
};

// One score an item. A deadline is tried again once, a lost worker kRewardRetries_max times.
core::Result<std::vector<RewardScore>> score_with_retries(RewardSource& source,
                                                          const std::vector<RewardItem>& items,
                                                          core::Duration deadline,
                                                          RewardTries& tries);

}  // namespace troupe::actors
