// A stack of free blocks threaded through one array, and a count of references in another.
#include "runtime/engine/block_pool.hpp"

#include "runtime/core/check.hpp"

namespace troupe::engine {

BlockPool::BlockPool(std::int32_t blocks)
    : references_(static_cast<std::size_t>(blocks), 0),
      next_free_(static_cast<std::size_t>(blocks), -1),
      top_(blocks > 0 ? 0 : -1),
      free_count_(blocks) {
  for (std::int32_t i = 0; i + 1 < blocks; ++i)
    next_free_[static_cast<std::size_t>(i)] = i + 1;
}

std::int32_t BlockPool::take() {
  TROUPE_CHECK(top_ >= 0, "a block was taken from an empty pool");
  const std::int32_t block = top_;
  const auto at = static_cast<std::size_t>(block);
  top_ = next_free_[at];
  next_free_[at] = -1;
  references_[at] = 1;
  --free_count_;
  return block;
}

void BlockPool::share(std::int32_t block) {
  TROUPE_CHECK(references(block) > 0, "a free block was shared");
  ++references_[static_cast<std::size_t>(block)];
}

void BlockPool::release(std::int32_t block) {
  TROUPE_CHECK(references(block) > 0, "a free block was released");
  const auto at = static_cast<std::size_t>(block);
  if (--references_[at] > 0) return;
  next_free_[at] = top_;
  top_ = block;
  ++free_count_;
}

std::int32_t BlockPool::references(std::int32_t block) const {
  TROUPE_CHECK(block >= 0 && block < total(), "a block number outside the pool");
  return references_[static_cast<std::size_t>(block)];
}

}  // namespace troupe::engine
