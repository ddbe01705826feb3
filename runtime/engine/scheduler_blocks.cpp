// Who holds blocks: growth, preemption, entry and exit.
#include "runtime/core/check.hpp"
#include "runtime/engine/scheduler.hpp"

#include <algorithm>

namespace troupe::engine {

// Gives every running sample the block of its newest token, oldest first; the youngest pay.
void Scheduler::grow_tables() {
  for (std::size_t g = 0; g < active_.size(); ++g) {
    Group& group = *active_[g];
    if (!group.forked) continue;
    for (SampleState& sample : group.samples) {
      while (sample.status == SampleStatus::kRunning &&
             static_cast<std::int32_t>(sample.blocks.size()) < blocks_for(group.length(sample))) {
        if (pool_.free_count() > 0) {
          sample.blocks.push_back(pool_.take());
        } else {
          preempt_youngest();
        }
      }
    }
  }
}

// A group that is still in its prompt goes back to the queue whole; of others the last sample goes.
void Scheduler::preempt_youngest() {
  for (std::size_t g = active_.size(); g-- > 0;) {
    Group& group = *active_[g];
    if (group.count(SampleStatus::kRunning) == 0) continue;
    if (!group.forked) {
      for (SampleState& sample : group.samples) {
        preempt(group, sample);
        sample.status = SampleStatus::kWaiting;
      }
      waiting_.push_front(std::move(active_[g]));
      active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(g));
      return;
    }
    for (auto sample = group.samples.rbegin(); sample != group.samples.rend(); ++sample) {
      if (sample->status != SampleStatus::kRunning) continue;
      preempt(group, *sample);
      return;
    }
  }
  TROUPE_CHECK(false, "no block is free and nothing runs");
}

void Scheduler::preempt(Group& group, SampleState& sample) {
  release_blocks(sample);
  sample.status = SampleStatus::kPreempted;
  ++preempted_;
  if (group.count(SampleStatus::kRunning) == 0) {
    group.shared_computed = 0;
    group.shared_planned = 0;
  }
}

void Scheduler::release_blocks(SampleState& sample) {
  for (auto block = sample.blocks.rbegin(); block != sample.blocks.rend(); ++block) {
    pool_.release(*block);
  }
  sample.blocks.clear();
  sample.computed = 0;
  if (sample.status == SampleStatus::kRunning) --running_;
}

// Blocks that those who run will want within four steps or so; entering must leave them.
std::int32_t Scheduler::spare_blocks() const {
  return (running_ + 3) / 4;
}

bool Scheduler::resume(Group& group, SampleState& sample) {
  if (running_ >= sequences_max_) return false;
  const SampleState* holder = nullptr;
  for (const SampleState& other : group.samples) {
    if (other.status == SampleStatus::kRunning) holder = &other;
  }
  const std::int32_t wanted = blocks_for(group.length(sample));
  const std::int32_t shared = holder != nullptr ? group.shared_blocks() : 0;
  if (pool_.free_count() < wanted - shared + spare_blocks()) return false;
  for (std::int32_t i = 0; i < shared; ++i) {
    const std::int32_t block = holder->blocks[static_cast<std::size_t>(i)];
    pool_.share(block);
    sample.blocks.push_back(block);
  }
  for (std::int32_t i = shared; i < wanted; ++i)
    sample.blocks.push_back(pool_.take());
  sample.status = SampleStatus::kRunning;
  ++running_;
  return true;
}

bool Scheduler::admit_next() {
  if (waiting_.empty()) return false;
  Group& group = *waiting_.front();
  const std::int32_t samples = group.request.samples;
  const std::int32_t shared = group.shared_blocks();
  if (samples > sequences_max_ - running_) return false;
  if (pool_.free_count() < shared + samples + spare_blocks()) return false;
  const std::int32_t table_max =
      blocks_for(group.prompt_size() + group.request.sampling.max_new_tokens);
  for (std::int32_t i = 0; i < samples; ++i) {
    SampleState& sample = group.at(i);
    sample.blocks.reserve(static_cast<std::size_t>(table_max));
    for (std::int32_t b = 0; b < shared; ++b) {
      if (i == 0) {
        sample.blocks.push_back(pool_.take());
      } else {
        const std::int32_t block = group.at(0).blocks[static_cast<std::size_t>(b)];
        pool_.share(block);
        sample.blocks.push_back(block);
      }
    }
    sample.blocks.push_back(pool_.take());
    sample.status = SampleStatus::kRunning;
    ++running_;
  }
  active_.push_back(std::move(waiting_.front()));
  waiting_.pop_front();
  return true;
}

void Scheduler::finish(Group& group, std::int32_t sample) {
  SampleState& state = group.at(sample);
  release_blocks(state);
  state.status = SampleStatus::kFinished;
  if (group.count(SampleStatus::kRunning) == 0) group.shared_computed = 0;
}

void Scheduler::sweep() {
  std::erase_if(active_, [](const std::unique_ptr<Group>& group) {
    return group->count(SampleStatus::kFinished) == group->request.samples;
  });
}

Group* Scheduler::find(core::GroupId id) {
  const auto is_it = [id](const std::unique_ptr<Group>& group) { return group->request.id == id; };
  const auto active = std::find_if(active_.begin(), active_.end(), is_it);
  if (active != active_.end()) return active->get();
  const auto waiting = std::find_if(waiting_.begin(), waiting_.end(), is_it);
  return waiting != waiting_.end() ? waiting->get() : nullptr;
}

std::unique_ptr<Group> Scheduler::remove(core::GroupId id) {
  std::unique_ptr<Group> found;
  const auto take = [&](auto& groups) {
    const auto at = std::find_if(groups.begin(), groups.end(),
                                 [id](const auto& group) { return group->request.id == id; });
    if (at == groups.end()) return;
    found = std::move(*at);
    groups.erase(at);
  };
  take(active_);
  if (found == nullptr) take(waiting_);
  if (found == nullptr) return nullptr;
  for (SampleState& sample : found->samples)
    release_blocks(sample);
  return found;
}

void Scheduler::forget_computed() {
  for (const auto& group : active_) {
    group->shared_computed = 0;
    for (SampleState& sample : group->samples)
      sample.computed = 0;
  }
}

}  // namespace troupe::engine
