// The block tables of all samples: which KV blocks each sample holds, which blocks samples share,
// and which blocks of earlier prompts are reused. The scheduler decides which samples run; this
// class finds out whether there are enough blocks and hands them out.
//
// A group's prompt is computed once, on sample 0's table; full blocks are shared, the last, partly
// filled block is copied to each sample (`commit`). A preempted sample that resumes takes the
// shared blocks from a sample of its group that still holds them.
//
// Full blocks are entered into a prefix index as soon as they are computed. A group that is
// admitted looks its prompt up block by block and starts from the blocks found, held by others or
// free; so does a sample that resumes. The last position is always computed, since the next token
// is drawn from it. A block found is never written: later positions go into the sample's own
// blocks. Two groups with one prompt that are admitted together both compute it (neither waits for
// the other), and the second set of blocks stays out of the index. Groups that want log-probs of
// their prompt compute all of it. Blocks computed by several versions of the weights are not
// entered.
//
// If all layers have a sliding window, a forked sample releases the blocks behind the window of its
// next position (they stay in the prefix index like any free block). A sample that resumes takes
// blocks as it proceeds, so it needs no more of them than one that was never preempted. A prompt's
// blocks are held as a whole until its samples fork. When no sample of a group holds all of them
// any more, a sample that resumes recomputes them alone, starting from the blocks in the index.
//
// Owned by the scheduler, on the engine's thread. Bound: the pool's blocks.
#pragma once

#include "runtime/engine/block_pool.hpp"
#include "runtime/engine/group.hpp"
#include "runtime/engine/prefix_index.hpp"

#include <cstdint>
#include <vector>

namespace troupe::engine {

struct BlockCopy {
  std::int32_t from = 0;
  std::int32_t to = 0;
};

class BlockTables {
 public:
  BlockTables(std::int32_t blocks, bool prefix_cache, KvWindow window)
      : pool_(blocks),
        index_(prefix_cache ? blocks : 0),
        prefix_cache_(prefix_cache),
        window_(window) {}

  // `admit` makes tables for all samples of a waiting group, `resume` for one preempted sample.
  // `spare`: free blocks that must be left. False: too few are free, and nothing has changed.
  bool admit(Group& group, std::int32_t spare);
  bool resume(Group& group, SampleState& sample, std::int32_t spare);
  // Gives the sample the blocks that it needs for this step. False: it needs more, none is free.
  bool grow(const Group& group, SampleState& sample);
  // Releases all blocks of the sample.
  void release(SampleState& sample);

  // Records that the positions of sample `index` before `end` are computed. If that completes a new
  // group's prompt, every sample gets its own copy of the partly filled last block; `copies`
  // receives the copies to make before the next step.
  void commit(Group& group, std::int32_t index, std::int32_t end, std::vector<BlockCopy>& copies);

  // Empties the prefix index: `forget_cached` before the blocks' memory is freed, `new_weights`
  // when the weights change.
  void forget_cached() { index_.clear(); }
  void new_weights();

  const BlockPool& pool() const { return pool_; }
  const PrefixIndex& index() const { return index_; }
  std::uint64_t prefix_query_tokens() const { return query_tokens_; }
  std::uint64_t prefix_hit_tokens() const { return hit_tokens_; }
  std::uint64_t evicted() const { return evicted_; }

 private:
  PrefixIndex::Scope scope_of(const Group& group) const {
    return {swaps_, group.request.cache_salt};
  }
  std::int32_t take_block();
  void free_block(std::int32_t block);
  void give_back(const Group& group, SampleState& sample);
  void look_up(const Group& group, const SampleState& sample, std::int32_t skip);
  std::int32_t free_hits() const;
  void take_hits(SampleState& sample);
  void share(const SampleState& from, std::int32_t begin, std::int32_t end, SampleState& to);
  void count_hits(std::int32_t asked, std::int32_t found);
  void enter_blocks(const Group& group, SampleState& sample, std::int32_t computed);

  BlockPool pool_;
  PrefixIndex index_;
  const bool prefix_cache_;
  const KvWindow window_;
  std::vector<std::int32_t> hits_;  // blocks that look_up found
  std::uint64_t swaps_ = 0;         // weight swaps so far
  std::uint64_t query_tokens_ = 0, hit_tokens_ = 0, evicted_ = 0;
};

}  // namespace troupe::engine
