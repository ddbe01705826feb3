// Decides which samples run, and so what each step of the engine computes (step_slices.hpp).
//
//   waiting (whole groups, by priority, then first come first served) -> running -> finished
//                                                                        running <-> preempted
//
// A group is admitted when there are free blocks for its prompt, one more for each sample, and a
// few to spare for samples that already run. Its prompt is computed once, by sample 0. When a
// running sample needs a block and none is free, the youngest running sample of the groups that are
// least urgent loses its blocks; it is computed again later, from its tokens and from blocks that
// are still cached (block_tables.hpp), but after more urgent groups that wait. The oldest sample of
// the most urgent groups is never preempted for another, so the engine always makes progress. A
// group may wait for ever behind more urgent ones.
//
// Groups of several owners share the engine (owner_shares.hpp): of equally urgent ones, those enter
// first whose owner has fewest blocks, or has let others go before it for longest; the owner with
// most gives way to them, and also when blocks run out.
//
// Decisions depend only on the requests and their order. Owned by the engine, on its thread.
// Bounds: `sequences_max` running samples, the pool's blocks, kEngineQueue_groups_max waiting
// groups.
#pragma once

#include "runtime/core/checked_change.hpp"
#include "runtime/engine/block_tables.hpp"
#include "runtime/engine/group.hpp"
#include "runtime/engine/owner_shares.hpp"
#include "runtime/engine/step_slices.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe::engine {

class Scheduler {
 public:
  Scheduler(std::int32_t blocks,
            std::int32_t sequences_max,
            std::int32_t step_tokens_max,
            bool prefix_cache = true,
            std::int32_t window = 0);

  // Queues a group whose request has passed check_request.
  void submit(std::unique_ptr<Group> group);
  bool queue_full() const;

  // The slices of the next step, in row order; empty only if idle. If a step failed, call it again
  // without having committed the slices.
  std::span<const Slice> schedule();
  // Records that the slice was computed. Appends to `copies` the block copies to make before the
  // next step.
  void commit(const Slice& slice, std::vector<BlockCopy>& copies) {
    const core::CheckedChange checked(*this);
    tables_.commit(*slice.group, slice.sample, slice.first + slice.count, copies);
  }
  // Marks the sample as finished and frees its blocks. The group stays until `sweep`.
  void finish(Group& group, std::int32_t sample);
  // Removes groups without unfinished samples.
  void sweep();

  Group* find(core::GroupId id) const;
  // Removes a group, frees the blocks of its samples, and returns it. Null if there is no such
  // group.
  std::unique_ptr<Group> remove(core::GroupId id);
  // All groups, those that were admitted first.
  std::vector<core::GroupId> groups() const;
  // Frees the blocks of all samples; the samples keep their tokens.
  void release_all();
  // The next step uses other weights: empties the prefix index. Running samples lose their blocks
  // (kRecompute) or go on with blocks of several versions (kKeep).
  void new_weights(KvAction action);
  // Empties the prefix index, before the blocks' memory is freed.
  void forget_cached() { tables_.forget_cached(); }

  // What is broken, or "": each block is in as many tables as it has references, running samples
  // are counted and no more than there may be, and no other sample holds blocks.
  std::string check_invariants() const;

  bool idle() const { return waiting_.empty() && active_.empty(); }
  std::int64_t waiting_groups() const { return static_cast<std::int64_t>(waiting_.size()); }
  std::int32_t running() const { return running_; }
  // Unfinished samples without blocks.
  std::int64_t waiting() const { return unfinished_ - running_; }
  std::uint64_t preempted() const { return preempted_; }
  const BlockTables& tables() const { return tables_; }

 private:
  void grow_tables();
  void preempt_youngest();
  void set_back(Group& group, SampleState& sample);
  void requeue(std::size_t active);
  void release(SampleState& sample);
  void enter();
  bool resume(Group& group, SampleState& sample);
  bool more_urgent_waits(const Group& than) const;
  Group* admit_next();
  Group* admit(WaitingGroups::iterator waiting);
  void enter_shared();
  // Blocks that running samples will need within about four steps; admission leaves them free.
  std::int32_t spare_blocks() const { return (running_ + 3) / 4; }

  BlockTables tables_;
  const std::int32_t sequences_max_;
  WaitingGroups waiting_;
  ActiveGroups active_;
  StepSlices slices_;
  std::vector<Group*> entering_;  // scratch of enter
  std::int32_t running_ = 0;
  std::int64_t unfinished_ = 0;  // samples
  bool shared_ = false;          // groups have owners
  OwnerTurns owners_;
  std::uint64_t preempted_ = 0;
};

}  // namespace troupe::engine
