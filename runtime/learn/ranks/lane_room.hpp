// The gradient of a lane that is never whole: of one part of the model at a time, on the way back
// through it (sharded_weights.hpp). Parts come in descending order; what is complete of the parts
// seen so far, in whole turns of blocks, is to be shipped before the next one is computed. A turn
// that reaches into the part below is carried over. Owned by a rank's gradient, used on its thread;
// numeric work on the team. Memory, in the team's: the largest part's gradient with the turns that
// it lies in, an embedding that is the head too, and a turn.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/range.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/ranks/block_shards.hpp"
#include "runtime/model/part_room.hpp"

#include <cstdint>
#include <functional>

namespace troupe::learn {

class LaneRoom {
 public:
  // `layout`: of all weights of `spec`. `team` outlives the object.
  LaneRoom(const model::ModelSpec& spec,
           const model::ParamLayout& layout,
           const BlockShards& shards,
           core::TeamRunner& team);

  // The layout of the gradient that passes add to; `take` gets its numbers.
  const std::shared_ptr<const model::ParamLayout>& layout() const { return room_.layout(); }

  // Before the way back. The numbers are zero.
  void begin() {
    left_ = shards_.turns();
    carries_ = false;
  }
  // `part` of `lane`, which has the layout, is complete, and so are all above. `ship` gets the
  // turns that are complete with it, if there are any, and their numbers, the elements
  // in_buffer(turns). Then the part's numbers are set to zero. An embedding that is the head too is
  // complete at the very end, as part 0.
  using Ship = std::function<core::Result<void>(core::Range turns, const float* numbers)>;
  core::Result<void> finish(std::int64_t part, float* lane, const Ship& ship);

 private:
  void clear(float* numbers, std::int64_t count);

  const BlockShards shards_;
  const std::int64_t turn_;  // elements
  const model::PartRoom room_;
  core::TeamRunner& team_;
  core::Buffer<float> carried_;  // the lowest turn of the previous part
  std::int64_t left_ = 0;        // turns from here on are gone
  bool carries_ = false;
};

}  // namespace troupe::learn
