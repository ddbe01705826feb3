// Constructs the rewards that need no model in this process, as the section `reward` names them.
// Plain functions; the rewards begin to work when their role does.
#pragma once

#include "actors/reward/reward_calls.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"

#include <memory>

namespace troupe::session {

// The rule, Python function or servers, or the judge where there are none of those. Errors: kConfig
// naming file or key.
core::Result<std::unique_ptr<actors::reward::RewardCalls>> make_reward(
    const config::TrainConfig& config);

// The judge of reward.judge and its other keys. Errors (kConfig): those of its rubric, key and
// URLs.
core::Result<std::unique_ptr<actors::reward::RewardCalls>> make_judge(
    const config::TrainConfig& config);

}  // namespace troupe::session
