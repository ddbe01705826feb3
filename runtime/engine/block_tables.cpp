#include "runtime/engine/block_tables.hpp"

#include <algorithm>

namespace troupe::engine {
namespace {

BlockTokens tokens_of(const Group& group, const SampleState& sample, std::int32_t block) {
  BlockTokens tokens;
  for (std::int32_t i = 0; i < kBlockTokens; ++i)
    tokens[static_cast<std::size_t>(i)] = group.token_at(sample, block * kBlockTokens + i);
  return tokens;
}

}  // namespace

// Takes a free block and erases its entry in the prefix index.
std::int32_t BlockTables::take_block() {
  const std::int32_t block = pool_.take();
  if (prefix_cache_ && index_.erase(block)) ++evicted_;
  return block;
}

// Drops one reference. A block with an entry in the prefix index keeps it until the block is taken.
void BlockTables::free_block(std::int32_t block) {
  pool_.release(block, prefix_cache_ && index_.holds(block));
}

// Appends the blocks that this step needs: those of the newest token or of the next chunk.
bool BlockTables::grow(const Group& group, SampleState& sample) {
  const std::int32_t next = group.next_position(sample);
  const std::int32_t wanted = window_.table(
      group.length(sample), sample.alone ? next : std::max(next, group.shared_positions()));
  while (static_cast<std::int32_t>(sample.blocks.size()) < wanted) {
    if (pool_.free_count() == 0) return false;
    sample.blocks.push_back(take_block());
  }
  return true;
}

// Frees from the last block on, so that later the cache loses the end of a text before its
// beginning.
void BlockTables::release(SampleState& sample) {
  for (auto block = sample.blocks.rbegin(); block != sample.blocks.rend(); ++block) {
    if (*block != kGoneBlock) free_block(*block);
  }
  sample.blocks.clear();
  sample.behind = 0;
  sample.alone = false;
  sample.computed = 0;
  sample.indexed = 0;
  sample.entry = {};
  sample.mixed = false;
}

// Frees the blocks that no later row of the sample attends to. Does nothing until all shared blocks
// are computed, since any sample of the group may have to continue computing them.
void BlockTables::give_back(const Group& group, SampleState& sample) {
  if (!window_.any() || group.shared_computed < group.shared_positions()) return;
  const std::int32_t behind = window_.behind(group.next_position(sample));
  for (; sample.behind < behind; ++sample.behind) {
    std::int32_t& block = sample.blocks[static_cast<std::size_t>(sample.behind)];
    free_block(block);
    block = kGoneBlock;
  }
}

bool BlockTables::resume(Group& group, SampleState& sample, std::int32_t spare) {
  const SampleState* holder = nullptr;
  bool company = false;
  for (const SampleState& other : group.samples) {
    if (other.status != SampleStatus::kRunning) continue;
    company = true;
    if (!other.alone && other.behind == 0) holder = &other;
  }
  const bool alone = company && holder == nullptr;
  const std::int32_t shared = holder != nullptr ? group.shared_blocks() : 0;
  const bool shared_there = group.shared_computed == group.shared_positions();
  hits_.clear();
  if (holder == nullptr || (!holder->mixed && shared_there)) look_up(group, sample, shared);
  const auto found = static_cast<std::int32_t>(hits_.size());
  const std::int32_t there = (shared + found) * kBlockTokens;
  // Once the prompt is computed, no row needs the blocks before the window of the next position.
  const bool past = alone || (holder != nullptr ? shared_there : there >= group.shared_positions());
  const std::int32_t behind = past ? window_.behind(there) : 0;
  hits_.erase(hits_.begin(), hits_.begin() + std::max(behind - shared, 0));
  const std::int32_t length = group.length(sample);
  const std::int32_t wanted =
      window_.table(length, alone ? there : std::max(there, group.shared_positions()));
  std::int32_t asked = wanted - shared - found;
  if (window_.any()) {  // the most that it will hold at once, minus what it starts with
    const std::int32_t all = blocks_for(length) - shared - found;
    asked = std::min(all, std::max(asked, window_.held_max() - (shared + found - behind)));
  }
  if (pool_.free_count() - free_hits() < asked + spare) return false;
  sample.blocks.assign(static_cast<std::size_t>(behind), kGoneBlock);
  if (holder != nullptr) share(*holder, behind, shared, sample);
  take_hits(sample);
  count_hits(length - shared * kBlockTokens, found);
  for (std::int32_t i = shared + found; i < wanted; ++i)
    sample.blocks.push_back(take_block());
  if (!company) {
    group.shared_computed = std::min(there, group.shared_positions());
    group.shared_planned = group.shared_computed;
  }
  if (alone || (found > 0 && there > group.shared_positions())) sample.computed = there;
  sample.behind = behind;
  sample.alone = alone;
  sample.mixed = holder != nullptr && holder->mixed;
  return true;
}

bool BlockTables::admit(Group& group, std::int32_t spare) {
  const std::int32_t samples = group.request.samples;
  const std::int32_t shared = group.shared_blocks();
  SampleState& first = group.at(0);
  hits_.clear();
  if (!group.scores_prompt()) look_up(group, first, 0);
  const auto found = static_cast<std::int32_t>(hits_.size());
  if (pool_.free_count() - free_hits() < shared - found + samples + spare) return false;
  const std::int32_t table_max =
      blocks_for(group.prompt_size() + group.request.sampling.max_new_tokens);
  for (SampleState& sample : group.samples)
    sample.blocks.reserve(static_cast<std::size_t>(table_max));
  take_hits(first);
  count_hits(group.scores_prompt() ? 0 : group.prompt_size(), found);
  for (std::int32_t b = found; b < shared; ++b)
    first.blocks.push_back(take_block());
  group.shared_computed = found * kBlockTokens;
  group.shared_planned = group.shared_computed;
  for (std::int32_t i = 0; i < samples; ++i) {
    SampleState& sample = group.at(i);
    if (i > 0) share(first, 0, shared, sample);
    sample.blocks.push_back(take_block());
  }
  return true;
}

void BlockTables::share(const SampleState& from,
                        std::int32_t begin,
                        std::int32_t end,
                        SampleState& to) {
  for (std::int32_t i = begin; i < end; ++i) {
    const std::int32_t block = from.blocks[static_cast<std::size_t>(i)];
    pool_.share(block);
    to.blocks.push_back(block);
  }
}

void BlockTables::commit(Group& group,
                         std::int32_t index,
                         std::int32_t end,
                         std::vector<BlockCopy>& copies) {
  group.shared_computed = std::max(group.shared_computed, std::min(end, group.shared_positions()));
  SampleState& computed = group.at(index);
  if (computed.alone || end > group.shared_positions()) computed.computed = end;
  enter_blocks(group, computed, end);
  if (group.forked) give_back(group, computed);
  if (group.forked || end < group.prompt_size()) return;
  group.forked = true;
  const auto tail = static_cast<std::size_t>(group.shared_blocks());
  for (std::int32_t i = 1; i < group.request.samples; ++i) {
    SampleState& sample = group.at(i);
    sample.computed = end;
    if (end > group.shared_positions()) {
      copies.push_back({group.at(0).blocks[tail], sample.blocks[tail]});
    }
  }
  for (SampleState& sample : group.samples)
    give_back(group, sample);
}

void BlockTables::new_weights() {
  ++swaps_;
  forget_cached();
}

// Adds to hits_ the indexed blocks that hold the sample's tokens, from its block `skip` on up to
// the first block that is not indexed. Never includes the block of the last position.
void BlockTables::look_up(const Group& group, const SampleState& sample, std::int32_t skip) {
  if (!prefix_cache_) return;
  const std::int32_t most = (group.length(sample) - 1) / kBlockTokens;
  PrefixIndex::Node node;
  for (std::int32_t b = 0; b < most; ++b) {
    node = index_.find(scope_of(group), node, tokens_of(group, sample, b));
    if (!node.found()) return;
    if (b >= skip) hits_.push_back(node.block);
  }
}

// How many of hits_ are free: take_hits takes these from the free list.
std::int32_t BlockTables::free_hits() const {
  return static_cast<std::int32_t>(
      std::count_if(hits_.begin(), hits_.end(),
                    [this](std::int32_t block) { return pool_.references(block) == 0; }));
}

// Gives the blocks of hits_ to the sample. Call it before any other block is taken, since `take`
// could return one of them.
void BlockTables::take_hits(SampleState& sample) {
  for (const std::int32_t block : hits_) {
    if (pool_.references(block) == 0) {
      pool_.revive(block);
    } else {
      pool_.share(block);
    }
    sample.blocks.push_back(block);
  }
}

// Counts a lookup of `asked` tokens that found `found` blocks.
void BlockTables::count_hits(std::int32_t asked, std::int32_t found) {
  if (!prefix_cache_) return;
  query_tokens_ += static_cast<std::uint64_t>(asked);
  hit_tokens_ += static_cast<std::uint64_t>(found) * kBlockTokens;
}

// Enters into the prefix index the sample's blocks that are full, now that `computed` positions are
// computed. If the entry of the last indexed block is gone, starts again at the first block. If
// another block with the same tokens is indexed already, the sample's own block stays out, and its
// successors are entered after that other block. Stops at a block that was released (kGoneBlock)
// and is no longer indexed.
void BlockTables::enter_blocks(const Group& group, SampleState& sample, std::int32_t computed) {
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
      index_.erase(block);  // its old entry, whose predecessor is gone
      node = index_.insert(scope_of(group), sample.entry, tokens, block);
    }
    sample.entry = node;
  }
}

std::string BlockTables::check_invariants(std::vector<std::int32_t> held) const {
  std::sort(held.begin(), held.end());
  std::int32_t free = pool_.total();
  for (auto block = held.begin(); block != held.end(); --free) {
    const auto next = std::upper_bound(block, held.end(), *block);
    if (pool_.references(*block) != next - block) {
      return "block " + std::to_string(*block) + " has " +
             std::to_string(pool_.references(*block)) + " references and is in the tables of " +
             std::to_string(next - block) + " samples";
    }
    block = next;
  }
  if (free == pool_.free_count()) return "";
  return std::to_string(pool_.free_count()) + " blocks are said to be free, " +
         std::to_string(free) + " are";
}

}  // namespace troupe::engine
