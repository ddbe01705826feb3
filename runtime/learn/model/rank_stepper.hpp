// Steps of a model that the ranks of a gang train together (ranks.hpp). Stage 0: the gradient is
// gathered, and each rank steps all weights with moments of its own. Stages 1 and 2: a rank has the
// moments of its blocks and steps these, and the new weights are gathered; at stage 3 they are left
// where they are (sharded_weights.hpp). Elementwise either way, so the stage changes no bit.
// Weights on the host of a device's team (offloads) are stepped there, with moments that are there,
// too. Used on the trainer's thread.
#pragma once

#include "runtime/learn/model/stepper.hpp"
#include "runtime/learn/ranks/rank_group.hpp"

#include <memory>

namespace troupe::learn {

// As alone_stepper; `group` and `passes` outlive the stepper. `optim.lanes` is at least the group's
// size. `passes`: the values are divided; null: they are not.
std::unique_ptr<Stepper> rank_stepper(RankGroup& group,
                                      const model::ParamStore& values,
                                      const std::shared_ptr<const model::ParamLayout>& trained,
                                      const OptimSettings& optim,
                                      core::TeamRunner& team,
                                      RankPasses* passes = nullptr);

}  // namespace troupe::learn
