// The trainers of rank 0 of a gang. Each call of theirs that changes the trainer, or that all ranks
// take part in, is first told to the other ranks, then done here, then agreed on. A role that has
// such a trainer does not know that it leads a gang. Used where the trainer is: on the role's
// device thread. Errors of every such call, besides the trainer's own: those of GangLink.
#pragma once

#include "actors/gang/gang_link.hpp"
#include "runtime/learn/rl/critic_trainer.hpp"
#include "runtime/learn/rl/trainer.hpp"
#include "runtime/learn/supervised/supervised_trainer.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <memory>

namespace troupe::actors::gang {

// The other ranks are not told of its each_part(), which all ranks call in what they do together.
std::unique_ptr<learn::PolicyTrainer> leading_policy(std::unique_ptr<learn::PolicyTrainer> own,
                                                     std::shared_ptr<GangLink> gang);

// Has all ranks publish their weights: each has a publisher for its share.
std::unique_ptr<weights::WeightPublisher> leading_publisher(
    std::unique_ptr<weights::WeightPublisher> own, std::shared_ptr<GangLink> gang);

std::unique_ptr<learn::CriticTrainer> leading_critic(std::unique_ptr<learn::CriticTrainer> own,
                                                     std::shared_ptr<GangLink> gang);

// The scale of scores is kept by rank 0 alone, which writes the model.
std::unique_ptr<learn::SupervisedTrainer> leading_supervised(
    std::unique_ptr<learn::SupervisedTrainer> own, std::shared_ptr<GangLink> gang);

}  // namespace troupe::actors::gang
