// RewardCalls as a RewardSource, for commands that score a file batch by batch: a call blocks until
// the batch is scored. Used from one thread at a time.
#pragma once

#include "actors/reward/reward_calls.hpp"

#include <memory>

namespace troupe::actors::reward {

std::unique_ptr<RewardSource> make_blocking_reward(std::unique_ptr<RewardCalls> calls);

}  // namespace troupe::actors::reward
