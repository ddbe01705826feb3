// Passes through a model whose weights the ranks have divided. Every part of the weights is
// gathered by all ranks together, so all make the same passes: one that has no micro-batch for a
// pass walks through it without computing. Used on the trainer's thread.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <functional>

namespace troupe::learn {

class RankPasses {
 public:
  virtual ~RankPasses() = default;
  // Before a rank's own forward pass, if it has one, and backward pass.
  virtual void begin_pass() = 0;
  // From now on calls `done(part)` after each part of a pass's way back, computed or walked, but
  // the embedding: this rank has, if it has any, the whole gradient of the part.
  using Done = std::function<core::Result<void>(std::int64_t part)>;
  virtual void watch_back(Done done) = 0;
  // Walks through what others compute and this rank has not. `backward`: some rank goes back too.
  virtual core::Result<void> finish_pass(bool backward) = 0;
  // The master values of this rank's blocks (block_shards.hpp), in the memory where they are
  // stepped.
  virtual core::Buffer<float>& own() = 0;
};

}  // namespace troupe::learn
