// Decides what each step computes. Every step has one budget of rows: first the newest token of
// each running sample, then chunks of prompts (and of samples that are computed again) with what is
// left.
//
//   waiting (whole groups, first come first served) -> running <-> preempted -> finished
//
// A group enters when the blocks of its prompt and one block for each sample are free, and a few to
// spare for those that run. Its prompt is computed once, on sample 0's table; full blocks are
// shared, the last, partly filled block is copied to each sample (`commit`). When a running sample
// needs a block and none is free, the youngest running sample gives its blocks back and is computed
// again later, from its tokens and on shared blocks if a sample of its group still holds them. The
// oldest sample is never the victim of another, so the engine always gets on.
//
// Full blocks are entered into a prefix index as soon as they are computed. A group that enters
// looks its prompt up block by block and starts from what is there, held by others or free; so does
// a sample that comes back. The last position is always computed, since the next token is drawn
// from it. A block found is never written: what differs comes after it, in blocks of the sample's
// own. Two groups with one prompt that enter together both compute it (nobody waits for another's
// blocks), and the second set of blocks stays out of the index. Groups that want log-probs of their
// prompt compute all of it. Blocks computed by several versions of the weights are not entered.
//
// `window` above 0: every layer of the model sees the last `window` tokens only. A forked sample
// gives back the blocks behind the window of its next position (they stay findable as any free
// block does), and one that comes back takes blocks as it goes, so it needs no more of them than
// those who never stopped. A prompt's blocks are held as a whole until its samples fork. When
// nobody of a group holds all of them any more, a sample that comes back computes them alone, from
// what the index has.
//
// Decisions depend on requests and their order alone. Owned by the engine, on its thread. Bounds:
// `sequences_max` running samples, the pool's blocks, kEngineQueue_groups_max waiting groups.
#pragma once

#include "runtime/engine/block_pool.hpp"
#include "runtime/engine/group.hpp"
#include "runtime/engine/prefix_index.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace troupe::engine {

// Consecutive positions of one sample that a step computes.
struct Slice {
  Group* group = nullptr;
  std::int32_t sample = 0;
  std::int32_t first = 0;
  std::int32_t count = 0;
  bool draws = false;  // ends at the last position: the next token is drawn from its last row
};

struct BlockCopy {
  std::int32_t from = 0;
  std::int32_t to = 0;
};

class Scheduler {
 public:
  Scheduler(std::int32_t blocks,
            std::int32_t sequences_max,
            std::int32_t step_tokens_max,
            bool prefix_cache = true,
            std::int32_t window = 0);

  // The request was checked: it can fit. Its samples are kWaiting.
  void submit(std::unique_ptr<Group> group);
  bool queue_full() const;

  // The slices of the next step, in row order; empty only when idle. A schedule that is not
  // committed (its step failed) is simply made again.
  std::span<const Slice> schedule();
  // The slice was computed. When it ends a new group's prompt, all samples get their own tail of
  // it: `copies` receives the blocks to be copied before the next step.
  void commit(const Slice& slice, std::vector<BlockCopy>& copies);
  // The sample is done: its blocks are free. The group stays until `sweep`.
  void finish(Group& group, std::int32_t sample);
  // Drops groups without unfinished samples.
  void sweep();

  Group* find(core::GroupId id);
  // Takes a group out and frees what its samples hold. Null when there is no such group.
  std::unique_ptr<Group> remove(core::GroupId id);
  // Every group that is here, oldest first.
  std::vector<core::GroupId> groups() const;
  // All samples give their blocks back and keep their tokens.
  void release_all();
  // Other weights from the next step on: nothing cached is found again, and running samples give
  // their blocks back too (kRecompute) or go on with blocks of mixed versions (kKeep).
  void new_weights(KvAction action);
  // Nothing cached is found again: the blocks' memory goes.
  void forget_cached() { index_.clear(); }

  bool idle() const { return waiting_.empty() && active_.empty(); }
  std::int64_t waiting_groups() const { return static_cast<std::int64_t>(waiting_.size()); }
  std::int32_t running() const { return running_; }
  // Unfinished samples without blocks.
  std::int64_t waiting() const { return unfinished_ - running_; }
  std::uint64_t preempted() const { return preempted_; }
  const BlockPool& pool() const { return pool_; }
  const PrefixIndex& index() const { return index_; }
  std::uint64_t prefix_query_tokens() const { return query_tokens_; }
  std::uint64_t prefix_hit_tokens() const { return hit_tokens_; }
  std::uint64_t evicted() const { return evicted_; }

 private:
  bool takes_decode_row(const Group& group, const SampleState& sample) const;
  void grow_tables();
  void preempt_youngest();
  void preempt(Group& group, SampleState& sample);
  void set_back(Group& group, SampleState& sample);
  void requeue(std::size_t active);
  void release_blocks(SampleState& sample);
  std::int32_t table_end(const Group& group, const SampleState& sample) const;
  void give_back(const Group& group, SampleState& sample);
  std::int32_t take_block();
  PrefixIndex::Scope scope_of(const Group& group) const {
    return {swaps_, group.request.cache_salt};
  }
  void look_up(const Group& group, const SampleState& sample, std::int32_t skip);
  std::int32_t free_hits() const;
  void take_hits(SampleState& sample);
  void count_hits(std::int32_t asked, std::int32_t found);
  void index_blocks(const Group& group, SampleState& sample, std::int32_t computed);
  std::int32_t schedule_decode(std::int32_t budget);
  void schedule_running(std::int32_t& rest);
  void schedule_entering(std::int32_t& rest);
  void add_slice(Group& group, std::int32_t sample, std::int32_t& rest);
  std::int32_t spare_blocks() const;
  bool resume(Group& group, SampleState& sample);
  bool admit_next();

  BlockPool pool_;
  PrefixIndex index_;
  const bool prefix_cache_;
  const std::int32_t sequences_max_;
  const std::int32_t step_tokens_max_;
  const KvWindow window_;
  std::deque<std::unique_ptr<Group>> waiting_;
  std::vector<std::unique_ptr<Group>> active_;  // oldest first
  std::vector<Slice> slices_;
  std::vector<std::pair<Group*, std::int32_t>> decode_;  // scratch of schedule_decode
  std::vector<std::int32_t> hits_;                       // blocks that look_up found
  std::size_t decode_turn_ = 0;  // whose turn it is when not all decode rows fit into a step
  std::int32_t running_ = 0;
  std::int64_t unfinished_ = 0;  // samples
  std::uint64_t preempted_ = 0;
  std::uint64_t next_order_ = 0;
  std::uint64_t swaps_ = 0;  // of weights
  std::uint64_t query_tokens_ = 0, hit_tokens_ = 0, evicted_ = 0;
};

}  // namespace troupe::engine
