// Moves buffers that are divided into blocks (block_shards.hpp) between the ranks: a piece at a
// time, in bounded memory. Every rank makes the same calls. Owned by a rank's stepper, used on its
// thread; numbers are in the memory of the team.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/ranks/block_shards.hpp"
#include "runtime/learn/ranks/rank_group.hpp"

#include <cstdint>
#include <functional>

namespace troupe::learn {

class ShardMover {
 public:
  // All outlive the object, except `shards`. Memory: `staging_floats`, or a turn if that is more.
  ShardMover(RankGroup& group,
             const BlockShards& shards,
             core::TeamRunner& team,
             std::int64_t staging_floats);

  const BlockShards& shards() const { return shards_; }
  std::int64_t turns_at_once() const { return turns_at_once_; }

  // Calls `piece` for all turns, some at a time.
  core::Result<void> each(const std::function<core::Result<void>(core::Range turns)>& piece) const;

  // Every rank gives `mine`, its blocks of these turns, and gets those of all in `window`, the
  // elements in_buffer(turns).
  core::Result<void> gather(core::Range turns, const float* mine, float* window);
  // Gathers all turns, from the shards to the whole buffer.
  core::Result<void> gather(const float* shard, float* buffer);
  // Rank 0 alone gets the blocks of all in `window`; on other ranks that is not read.
  core::Result<void> collect(core::Range turns, const float* mine, float* window);

 private:
  RankGroup& group_;
  const BlockShards shards_;
  core::TeamRunner& team_;
  std::int64_t turns_at_once_;
  core::Buffer<float> staging_;
};

}  // namespace troupe::learn
