// Which elements of a flat buffer belong to which rank: block b of kernels::kNormChunk elements to
// rank b mod R, so a rank's sums of squares are those that the global norm adds. A rank's shard is
// its blocks one after another, in ascending order. Turn t is the blocks t R to t R + R - 1, of
// which each rank has one; a buffer is packed and unpacked some turns at a time, which bounds the
// memory. Pure values; numbers are moved by a team's operations, in its memory.
#pragma once

#include "kernels/shapes.hpp"
#include "runtime/core/range.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace troupe::learn {

class BlockShards {
 public:
  static constexpr std::int64_t kBlock = kernels::kNormChunk;

  BlockShards(std::int64_t elements, int ranks);

  int ranks() const { return static_cast<int>(ranks_); }
  std::int64_t elements() const { return elements_; }
  std::int64_t blocks() const { return (elements_ + kBlock - 1) / kBlock; }
  std::int64_t turns() const { return (blocks() + ranks_ - 1) / ranks_; }
  // The size of one rank's shard.
  std::int64_t blocks(int rank) const;
  std::int64_t elements(int rank) const;
  // The place of turns [begin, end) in a rank's shard, in elements.
  core::Range in_shard(int rank, core::Range turns) const;
  // Where element `i` of a rank's shard lies in the buffer.
  std::int64_t place(int rank, std::int64_t i) const {
    return (i / kBlock * ranks_ + rank) * kBlock + i % kBlock;
  }

  // A rank's blocks within these elements of a buffer, in ascending order, cut at both ends.
  static std::vector<core::Range> of_rank(int rank, int ranks, core::Range elements);

  // Calls `piece` for all turns, at most `at_once` at a time, until the first error.
  core::Result<void> each(std::int64_t at_once,
                          const std::function<core::Result<void>(core::Range turns)>& piece) const;

  // The elements of the buffer in turns [begin, end): they are neighbours.
  core::Range in_buffer(core::Range turns) const;

  // Copies a rank's blocks of some turns between `window`, the elements in_buffer(turns), and
  // `part`, the elements in_shard(rank, turns). Every member of the team calls it.
  void pack(core::Team team, const float* window, int rank, core::Range turns, float* part) const;
  void unpack(core::Team team, const float* part, int rank, core::Range turns, float* window) const;

 private:
  void move(core::Team team,
            int rank,
            core::Range turns,
            const float* from,
            float* to,
            bool into_shard) const;

  std::int64_t elements_, ranks_;
};

}  // namespace troupe::learn
