// Planning one step: tables grow, decode rows, chunks, then whoever can enter.
#include "runtime/engine/scheduler.hpp"

#include "runtime/core/check.hpp"
#include "runtime/engine/limits.hpp"

#include <algorithm>

namespace troupe::engine {

Scheduler::Scheduler(std::int32_t blocks,
                     std::int32_t sequences_max,
                     std::int32_t step_tokens_max,
                     bool prefix_cache,
                     std::int32_t window)
    : pool_(blocks),
      index_(prefix_cache ? blocks : 0),
      prefix_cache_(prefix_cache),
      sequences_max_(sequences_max),
      step_tokens_max_(step_tokens_max),
      window_{window, step_tokens_max} {
  slices_.reserve(static_cast<std::size_t>(sequences_max));
  decode_.reserve(static_cast<std::size_t>(sequences_max));
}

void Scheduler::submit(std::unique_ptr<Group> group) {
  group->order = next_order_++;
  unfinished_ += group->request.samples;
  waiting_.push_back(std::move(group));
}

bool Scheduler::queue_full() const {
  return waiting_.size() >= limits::kEngineQueue_groups_max;
}

std::span<const Slice> Scheduler::schedule() {
  slices_.clear();
  for (const auto& group : active_)
    group->shared_planned = group->shared_computed;
  grow_tables();
  std::int32_t rest = step_tokens_max_ - schedule_decode(step_tokens_max_);
  schedule_running(rest);
  schedule_entering(rest);
  TROUPE_CHECK(!slices_.empty() || idle(), "unfinished groups and nothing to compute");
  return slices_;
}

// True for a sample that only its newest token keeps from drawing the next.
bool Scheduler::takes_decode_row(const Group& group, const SampleState& sample) const {
  return sample.status == SampleStatus::kRunning && group.forked &&
         group.shared_computed == group.shared_positions() &&
         group.length(sample) - group.next_position(sample) == 1;
}

std::int32_t Scheduler::schedule_decode(std::int32_t budget) {
  decode_.clear();
  for (const auto& group : active_) {
    for (std::int32_t i = 0; i < group->request.samples; ++i) {
      if (takes_decode_row(*group, group->at(i))) decode_.emplace_back(group.get(), i);
    }
  }
  const auto rows = std::min(static_cast<std::size_t>(budget), decode_.size());
  if (rows == decode_.size()) decode_turn_ = 0;
  std::int32_t rest = budget;
  for (std::size_t i = 0; i < rows; ++i) {
    const auto& [group, sample] = decode_[(decode_turn_ + i) % decode_.size()];
    add_slice(*group, sample, rest);
  }
  if (rows < decode_.size()) decode_turn_ = (decode_turn_ + rows) % decode_.size();
  return static_cast<std::int32_t>(rows);
}

void Scheduler::schedule_running(std::int32_t& rest) {
  for (const auto& group : active_) {
    const std::int32_t samples = group->forked ? group->request.samples : 1;
    for (std::int32_t i = 0; i < samples && rest > 0; ++i) {
      const SampleState& sample = group->at(i);
      if (sample.status != SampleStatus::kRunning || takes_decode_row(*group, sample)) continue;
      add_slice(*group, i, rest);
    }
  }
}

// Preempted samples come back before new groups; who comes first goes first.
void Scheduler::schedule_entering(std::int32_t& rest) {
  for (const auto& group : active_) {
    for (std::int32_t i = 0; i < group->request.samples; ++i) {
      SampleState& sample = group->at(i);
      if (sample.status != SampleStatus::kPreempted) continue;
      if (rest <= 0 || !resume(*group, sample)) return;
      add_slice(*group, i, rest);
    }
  }
  while (rest > 0 && admit_next())
    add_slice(*active_.back(), 0, rest);
}

void Scheduler::add_slice(Group& group, std::int32_t index, std::int32_t& rest) {
  const SampleState& sample = group.at(index);
  const std::int32_t first = group.next_position(sample);
  const std::int32_t length = group.length(sample);
  const std::int32_t count = std::min(rest, length - first);
  const std::int32_t end = first + count;
  slices_.push_back({&group, index, first, count, end == length});
  group.shared_planned = std::max(group.shared_planned, std::min(end, group.shared_positions()));
  rest -= count;
}

void Scheduler::commit(const Slice& slice, std::vector<BlockCopy>& copies) {
  Group& group = *slice.group;
  const std::int32_t end = slice.first + slice.count;
  group.shared_computed = std::max(group.shared_computed, std::min(end, group.shared_positions()));
  SampleState& computed = group.at(slice.sample);
  if (computed.alone || end > group.shared_positions()) computed.computed = end;
  index_blocks(group, computed, end);
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

}  // namespace troupe::engine
