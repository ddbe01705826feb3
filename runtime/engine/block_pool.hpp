// Tracks which KV blocks are free, and how many samples hold each of the others. Blocks are
// numbers; their bytes live in model::KvPool. A block that several samples share (a full block of
// their prompt) has one reference for each of them, and is free once the last reference is
// released.
//
// Free blocks form a list. A freed block whose contents may be reused goes to the end of the list,
// and can be revived until it is taken; any other goes to the front. So `take` prefers blocks
// without reusable contents, then those that were freed longest ago. Part of BlockTables, on the
// engine's thread. Bound: the number of blocks, fixed at construction.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::engine {

class BlockPool {
 public:
  explicit BlockPool(std::int32_t blocks);

  // Takes the first free block and gives it one reference. Among blocks without reusable contents
  // it is the one freed last, which may still be in the CPU's cache. The pool must not be empty.
  std::int32_t take();
  // Adds a reference to a block that is in use.
  void share(std::int32_t block);
  // Takes this free block, whose contents are reused, and gives it one reference.
  void revive(std::int32_t block);
  // Drops one reference. A block without references becomes free: at the end of the list if `keep`
  // (its contents may be reused), else at the front.
  void release(std::int32_t block, bool keep = false);

  std::int32_t references(std::int32_t block) const;
  std::int32_t free_count() const { return free_count_; }
  std::int32_t total() const { return static_cast<std::int32_t>(references_.size()); }

 private:
  // The list is circular; element `total()` is its head, before the first and after the last block.
  std::int32_t head() const { return total(); }
  void link(std::int32_t block, std::int32_t before, std::int32_t after);
  void unlink(std::int32_t block);

  std::vector<std::int32_t> references_;  // by block; 0 = free
  std::vector<std::int32_t> next_, previous_;
  std::int32_t free_count_ = 0;
};

}  // namespace troupe::engine
