// The trainers of rank 0 of a gang. Each call of theirs that changes the trainer, or that all ranks
// take part in, is first told to the other ranks, then done here, then agreed on. A role that has
// such a trainer does not know that it leads a gang. Used where the trainer is: on the role's
// device thread. Errors of every such call, beside the trainer's own: those of GangLink.
#pragma once

#include "actors/gang/gang_link.hpp"
#include "runtime/learn/critic_trainer.hpp"
#include "runtime/learn/trainer.hpp"

#include <memory>

namespace troupe::actors {

std::unique_ptr<learn::PolicyTrainer> leading_policy(std::unique_ptr<learn::PolicyTrainer> own,
                                                     std::shared_ptr<GangLink> gang);

std::unique_ptr<learn::CriticTrainer> leading_critic(std::unique_ptr<learn::CriticTrainer> own,
                                                     std::shared_ptr<GangLink> gang);

}  // namespace troupe::actors
