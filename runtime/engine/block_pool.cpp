#include "runtime/engine/block_pool.hpp"

#include "runtime/core/check.hpp"

namespace troupe::engine {
namespace {

std::size_t at(std::int32_t block) {
  return static_cast<std::size_t>(block);
}

}  // namespace

BlockPool::BlockPool(std::int32_t blocks)
    : references_(at(blocks), 0),
      next_(at(blocks) + 1),
      previous_(at(blocks) + 1),
      free_count_(blocks) {
  for (std::int32_t i = 0; i <= blocks; ++i) {
    next_[at(i)] = i < blocks ? i + 1 : 0;
    previous_[at(i)] = i > 0 ? i - 1 : blocks;
  }
}

std::int32_t BlockPool::take() {
  const std::int32_t block = next_[at(head())];
  TROUPE_CHECK(block != head(), "a block was taken from an empty pool");
  unlink(block);
  return block;
}

void BlockPool::share(std::int32_t block) {
  TROUPE_CHECK(references(block) > 0, "a free block was shared");
  ++references_[at(block)];
}

void BlockPool::revive(std::int32_t block) {
  TROUPE_CHECK(references(block) == 0, "a block in use was revived");
  unlink(block);
}

void BlockPool::release(std::int32_t block, bool keep) {
  TROUPE_CHECK(references(block) > 0, "a free block was released");
  if (--references_[at(block)] > 0) return;
  if (keep) {
    link(block, previous_[at(head())], head());
  } else {
    link(block, head(), next_[at(head())]);
  }
}

void BlockPool::link(std::int32_t block, std::int32_t before, std::int32_t after) {
  next_[at(before)] = block;
  previous_[at(after)] = block;
  previous_[at(block)] = before;
  next_[at(block)] = after;
  ++free_count_;
}

void BlockPool::unlink(std::int32_t block) {
  next_[at(previous_[at(block)])] = next_[at(block)];
  previous_[at(next_[at(block)])] = previous_[at(block)];
  references_[at(block)] = 1;
  --free_count_;
}

std::int32_t BlockPool::references(std::int32_t block) const {
  TROUPE_CHECK(block >= 0 && block < total(), "a block number outside the pool");
  return references_[at(block)];
}

}  // namespace troupe::engine
