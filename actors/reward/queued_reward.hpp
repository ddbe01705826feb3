// A RewardSource as RewardCalls: its batches run as jobs of the device queue, one job at a time.
// The batches that wait meanwhile are scored together by the next job, so that a learned model
// computes many groups in one pass. If a joined job fails, each of its batches is scored alone, and
// only the faulty one fails. Bound of a job: kRewardJob_groups_max groups, or one batch.
#pragma once

#include "actors/reward/reward_calls.hpp"

#include <memory>

namespace troupe::actors::reward {

std::unique_ptr<RewardCalls> make_queued_reward(std::unique_ptr<RewardSource> source);

}  // namespace troupe::actors::reward
