// What the scheduler does with the prefix index: looking prompts up, entering computed blocks.
#include "runtime/engine/scheduler.hpp"

namespace troupe::engine {
namespace {

BlockTokens tokens_of(const Group& group, const SampleState& sample, std::int32_t block) {
  BlockTokens tokens;
  for (std::int32_t i = 0; i < kBlockTokens; ++i)
    tokens[static_cast<std::size_t>(i)] = group.token_at(sample, block * kBlockTokens + i);
  return tokens;
}

}  // namespace

// A free block; what was cached in it is gone.
std::int32_t Scheduler::take_block() {
  const std::int32_t block = pool_.take();
  if (prefix_cache_ && index_.erase(block)) ++evicted_;
  return block;
}

// Adds to hits_ the blocks from block `skip` of the sample on that are there in an unbroken row,
// not the one of the last position.
void Scheduler::look_up(const Group& group, const SampleState& sample, std::int32_t skip) {
  if (!prefix_cache_) return;
  const std::int32_t most = (group.length(sample) - 1) / kBlockTokens;
  PrefixIndex::Node node;
  for (std::int32_t b = 0; b < most; ++b) {
    node = index_.find(scope_of(group), node, tokens_of(group, sample, b));
    if (!node.found()) return;
    if (b >= skip) hits_.push_back(node.block);
  }
}

// Of the blocks found, those that nobody holds: taking them makes the free list shorter.
std::int32_t Scheduler::free_hits() const {
  std::int32_t count = 0;
  for (const std::int32_t block : hits_)
    count += pool_.references(block) == 0 ? 1 : 0;
  return count;
}

// Before any other block is taken, since that one could be among them.
void Scheduler::take_hits(SampleState& sample) {
  for (const std::int32_t block : hits_) {
    if (pool_.references(block) == 0) {
      pool_.revive(block);
    } else {
      pool_.share(block);
    }
    sample.blocks.push_back(block);
  }
}

// `asked`: tokens looked up; `found`: blocks of them that were there.
void Scheduler::count_hits(std::int32_t asked, std::int32_t found) {
  if (!prefix_cache_) return;
  query_tokens_ += static_cast<std::uint64_t>(asked);
  hit_tokens_ += static_cast<std::uint64_t>(found) * kBlockTokens;
}

// Enters the sample's blocks that are full now that `computed` positions are. When an entry before
// them is gone, all are gone through again from the first; a block whose tokens another block holds
// already stays out, and its successors are entered after that one. Behind a block that was given
// back and is no longer cached nothing can be entered.
void Scheduler::index_blocks(const Group& group, SampleState& sample, std::int32_t computed) {
  const std::int32_t full = computed / kBlockTokens;
  if (!prefix_cache_ || sample.mixed || sample.indexed >= full) return;
  if (!index_.alive(sample.entry)) {
    sample.indexed = 0;
    sample.entry = {};
  }
  for (; sample.indexed < full; ++sample.indexed) {
    const BlockTokens tokens = tokens_of(group, sample, sample.indexed);
    PrefixIndex::Node node = index_.find(scope_of(group), sample.entry, tokens);
    if (!node.found()) {
      const std::int32_t block = sample.blocks[static_cast<std::size_t>(sample.indexed)];
      if (block == kGoneBlock) return;
      index_.erase(block);  // an entry after one that is gone
      node = index_.insert(scope_of(group), sample.entry, tokens, block);
    }
    sample.entry = node;
  }
}

}  // namespace troupe::engine
