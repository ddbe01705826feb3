// Which KV blocks are free and how many tables hold each of the others. Blocks are numbers; their
// bytes live in model::KvPool. A block that several samples share (a prompt's full blocks) has one
// reference for each of them and is free again when the last one lets go. Owned by the scheduler,
// on the engine's thread. Bound: the number of blocks, fixed at construction.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::engine {

class BlockPool {
 public:
  explicit BlockPool(std::int32_t blocks);

  // A free block with one reference: the one freed last, since it may still be in a cache.
  // The pool must not be empty.
  std::int32_t take();
  // One more reference to a block that is in use.
  void share(std::int32_t block);
  // One reference less; at none the block is free.
  void release(std::int32_t block);

  std::int32_t references(std::int32_t block) const;
  std::int32_t free_count() const { return free_count_; }
  std::int32_t total() const { return static_cast<std::int32_t>(references_.size()); }

 private:
  std::vector<std::int32_t> references_;  // 0 = free
  std::vector<std::int32_t> next_free_;   // of a free block: the one below it on the stack, or -1
  std::int32_t top_ = -1;
  std::int32_t free_count_ = 0;
};

}  // namespace troupe::engine
