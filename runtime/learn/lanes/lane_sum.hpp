// The gradient of an optimiser step, added over its micro-batches in the order of its lanes
// (lane_tree.hpp). Micro-batch j belongs to lane j mod L of round j div L. In a round the gradient
// of each lane starts at zero, and lanes are joined in the tree (lane_stack.hpp); the sums of the
// rounds are added to the step's gradient, which starts at zero, in ascending order. With one lane
// there is no tree: each micro-batch adds to the step's gradient itself. Owned by a model that is
// trained by one process, used on its thread; numeric work on the team, the same bits on any number
// of threads.
//
// Memory, in gradients of the trained part and in the team's memory: 1 with one lane, else 2 +
// floor(log2 L), taken once.
#pragma once

#include "runtime/core/team.hpp"
#include "runtime/learn/lanes/lane_stack.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace troupe::learn {

class LaneSum {
 public:
  // Gradients with the layout `trained`. `lanes` is at least 1; `team` outlives the object.
  LaneSum(const model::ModelSpec& spec,
          std::shared_ptr<const model::ParamLayout> trained,
          std::int64_t lanes,
          core::TeamRunner& team);

  std::int64_t lanes() const { return lanes_; }
  // What a backward pass adds to. The store stays the same object; the calls below change where its
  // numbers lie.
  model::ParamStore& working() { return round_ ? round_->working() : sum_; }
  // The step's gradient, after end_step().
  const model::ParamStore& sum() const { return sum_; }
  model::ParamStore& sum() { return sum_; }

  // Forgets what an unfinished step has left, and begins a step.
  void begin_step();
  // Ends the micro-batch before and begins the next one. `learns`: it will have a gradient. If not,
  // its lane is absent in this round, and no backward pass may follow.
  void begin_micro_batch(bool learns);
  // Ends the last micro-batch; lanes that are left in its round are absent.
  void end_step();

 private:
  void end_round();

  const std::int64_t lanes_;
  core::TeamRunner& team_;
  model::ParamStore sum_;
  std::optional<LaneStack> round_;  // none with one lane
  bool began_ = false;              // whether this step has begun a micro-batch
};

}  // namespace troupe::learn
