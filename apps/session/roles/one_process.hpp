// What the roles of a run in one process share. Empty in a node's process.
#pragma once

#include "actors/reward/reward_calls.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/model/params.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <memory>
#include <optional>

namespace troupe::session {

struct OneProcess {
  std::optional<config::TrainConfig> config;            // in place of what a Spawn carries
  std::unique_ptr<model::ParamStore> params;            // of the policy, loaded already
  std::unique_ptr<actors::reward::RewardCalls> reward;  // the rule, file or servers; null without
  std::shared_ptr<weights::WeightPublisher> publisher;
  std::shared_ptr<weights::WeightSubscriber> subscriber;
  bool generator_threads = false;  // each generator has a thread of its own alongside the trainer's
};

}  // namespace troupe::session
