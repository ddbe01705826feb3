// The block tables of all samples: which KV blocks each sample holds, which blocks samples share,
// and which blocks of earlier prompts are reused. The scheduler decides which samples run; this
// class checks whether enough blocks are free, and assigns them.
//
// The prompt of a group is computed once, in the blocks of sample 0. Its full blocks are shared by
// all samples; the last, partly filled block is copied to each sample (`commit`). A preempted
// sample that resumes takes the shared blocks from a sample of its group that still holds them.
//
// Full blocks are entered into a prefix index as soon as they are computed. When a group is
// admitted or a sample resumes, its tokens are looked up block by block, and the blocks found are
// reused, whether they are free or held by others. The last position is always computed, since the
// next token is drawn from it. A reused block is never written: later positions go into the
// sample's own blocks. If two groups with the same prompt are admitted together, both compute it,
// and the second set of blocks stays out of the index. Groups that want log-probs of their prompt
// compute all of it. Blocks with keys and values of several weight versions are not entered.
//
// If all layers have a sliding window, a sample releases the blocks that lie before the window of
// its next position, once its group has forked (they stay in the prefix index like any free block).
// A sample that resumes takes blocks as it proceeds, so it needs no more than one that was never
// preempted. Until the group forks, all blocks of its prompt are held. When later no sample holds
// all shared blocks, a sample that resumes recomputes them alone, starting from blocks in the
// index.
//
// Owned by the scheduler, on the engine's thread. Bound: the pool's blocks.
#pragma once

#include "runtime/engine/block_pool.hpp"
#include "runtime/engine/group.hpp"
#include "runtime/engine/prefix_index.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::engine {

// A copy of one KV block to another.
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

  // `admit` makes tables for all samples of a waiting group, `resume` for one preempted sample. At
  // least `spare` blocks stay free. Return false, and change nothing, if too few are free.
  bool admit(Group& group, std::int32_t spare);
  bool resume(Group& group, SampleState& sample, std::int32_t spare);
  // Gives the sample the blocks that it needs for this step. False if it needs more than are free.
  bool grow(const Group& group, SampleState& sample);
  // Releases all blocks of the sample.
  void release(SampleState& sample);

  // Records that the positions of sample `index` before `end` are computed. When the prompt of a
  // new group is complete, the group forks: every sample gets its own copy of the partly filled
  // last block. Appends to `copies` the block copies to make before the next step.
  void commit(Group& group, std::int32_t index, std::int32_t end, std::vector<BlockCopy>& copies);

  // Empties the prefix index: `forget_cached` before the blocks' memory is freed, `new_weights`
  // when the weights change.
  void forget_cached() { index_.clear(); }
  void new_weights();

  // What is broken, or "", if `held` has each block once for each sample that holds it.
  std::string check_invariants(std::vector<std::int32_t> held) const;

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
