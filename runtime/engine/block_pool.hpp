// Which KV blocks are free and how many tables hold each of the others. Blocks are numbers; their
// bytes live in model::KvPool. A block that several samples share (a prompt's full blocks) has one
// reference for each of them and is free again when the last reference is released.
//
// Free blocks form a list. A freed block whose contents may be reused goes to the end, and can be
// revived until it is taken; any other goes to the front. So blocks without contents are taken
// first, then those that were freed longest ago. Owned by the scheduler, on the engine's thread.
// Bound: the number of blocks, fixed at construction.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::engine {

class BlockPool {
 public:
  explicit BlockPool(std::int32_t blocks);

  // The first free block, with one reference: of those without contents the one freed last, since
  // it may still be in a processor's cache. The pool must not be empty.
  std::int32_t take();
  // One more reference to a block that is in use.
  void share(std::int32_t block);
  // Takes a free block out of the list as it is, with one reference.
  void revive(std::int32_t block);
  // Drops one reference. A block without references is free: last in the list if `keep`, else
  // first.
  void release(std::int32_t block, bool keep = false);

  std::int32_t references(std::int32_t block) const;
  std::int32_t free_count() const { return free_count_; }
  std::int32_t total() const { return static_cast<std::int32_t>(references_.size()); }

 private:
  // Place `total()` is the list's head: before the first and after the last free block.
  std::int32_t head() const { return total(); }
  void link(std::int32_t block, std::int32_t before, std::int32_t after);
  void unlink(std::int32_t block);

  std::vector<std::int32_t> references_;  // 0 = free
  std::vector<std::int32_t> next_, previous_;
  std::int32_t free_count_ = 0;
};

}  // namespace troupe::engine
