// The gradient of an optimiser step that ranks compute together. A rank runs the micro-batches of
// its own lanes. After each round all learn the figures of all, and decide alike whether to go on;
// then the gradients are shipped to their owners (lane_exchange.hpp). So a rank ends with its shard
// of the step's gradient. Owned by a rank's stepper, used on its thread; numeric work on the team.
// Memory: a gradient for each lane that may wait (lane_stack.hpp), the shard, and the staging.
// Where the weights are divided too and each rank has one lane, its gradient is shipped part by
// part on the way back (lane_room.hpp): then no rank has a whole gradient.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/lanes/lane_stack.hpp"
#include "runtime/learn/model/stepper.hpp"
#include "runtime/learn/ranks/block_shards.hpp"
#include "runtime/learn/ranks/lane_exchange.hpp"
#include "runtime/learn/ranks/lane_room.hpp"
#include "runtime/learn/ranks/rank_group.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::learn {

class RankGradient {
 public:
  // Gradients with the layout `trained`. `lanes` is at least the group's size. `passes`: of divided
  // weights, or null.
  RankGradient(RankGroup& group,
               const model::ModelSpec& spec,
               const std::shared_ptr<const model::ParamLayout>& trained,
               std::int64_t lanes,
               core::TeamRunner& team,
               RankPasses* passes);

  // Has the layout `trained`, or that of a room where it is shipped on the way.
  model::ParamStore& working() { return stack_.working(); }
  const std::shared_ptr<const model::ParamLayout>& layout() const { return trained_; }
  const BlockShards& shards() const { return shards_; }
  float* shard() { return sum_.data(); }

  void begin_step();
  // As Stepper::run. An error of a micro-batch on this rank ends the gang.
  core::Result<std::size_t> run(const StepParts& parts);

  // Norm of the whole gradient: the sums of all blocks, added in ascending order.
  core::Result<double> norm();
  core::Result<std::string> first_nonfinite();

 private:
  core::Result<void> run_own(const StepParts& parts, std::size_t first);
  core::Result<void> ship(std::int64_t part);
  // Makes the figures of the round's micro-batches [first, last) known to all.
  core::Result<void> share_figures(const StepParts& parts, std::size_t first, std::size_t last);

  RankGroup& group_;
  const BlockShards shards_;
  const std::int64_t lanes_;
  core::TeamRunner& team_;
  RankPasses* const passes_;
  const std::shared_ptr<const model::ParamLayout> trained_;
  std::optional<LaneRoom> room_;  // of a gradient that is shipped on the way
  LaneStack stack_;
  LaneExchange exchange_;
  core::Buffer<float> sum_;    // this rank's shard of the step's gradient
  std::vector<bool> present_;  // the lanes of this round that have a gradient
};

}  // namespace troupe::learn
