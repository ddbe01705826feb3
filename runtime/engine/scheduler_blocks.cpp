// Who holds blocks: growth, preemption, entry and exit.
#include "runtime/core/check.hpp"
#include "runtime/engine/scheduler.hpp"

#include <algorithm>

namespace troupe::engine {

// Blocks that the sample's table reaches to in this step. The shared ones are there as a whole.
std::int32_t Scheduler::table_end(const Group& group, const SampleState& sample) const {
  const std::int32_t next = group.next_position(sample);
  return window_.table(group.length(sample),
                       sample.alone ? next : std::max(next, group.shared_positions()));
}

// Gives every running sample the block of its newest token, oldest first; the youngest pay.
void Scheduler::grow_tables() {
  for (std::size_t g = 0; g < active_.size(); ++g) {
    Group& group = *active_[g];
    if (!group.forked) continue;
    for (SampleState& sample : group.samples) {
      while (sample.status == SampleStatus::kRunning &&
             static_cast<std::int32_t>(sample.blocks.size()) < table_end(group, sample)) {
        if (pool_.free_count() > 0) {
          sample.blocks.push_back(take_block());
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
      preempted_ += static_cast<std::uint64_t>(group.request.samples);
      requeue(g);
      return;
    }
    for (auto sample = group.samples.rbegin(); sample != group.samples.rend(); ++sample) {
      if (sample->status != SampleStatus::kRunning) continue;
      set_back(group, *sample);
      ++preempted_;
      return;
    }
  }
  TROUPE_CHECK(false, "no block is free and nothing runs");
}

// An active group that is still in its prompt waits again, before all others.
void Scheduler::requeue(std::size_t active) {
  std::unique_ptr<Group> group = std::move(active_[active]);
  active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(active));
  for (SampleState& sample : group->samples) {
    set_back(*group, sample);
    sample.status = SampleStatus::kWaiting;
  }
  waiting_.push_front(std::move(group));
}

void Scheduler::set_back(Group& group, SampleState& sample) {
  release_blocks(sample);
  sample.status = SampleStatus::kPreempted;
  if (!group.forked) {  // what was scored of the prompt is scored again
    sample.out.prompt_logprobs.clear();
    sample.out.prompt_top_logprobs.clear();
  }
  if (group.count(SampleStatus::kRunning) == 0) {
    group.shared_computed = 0;
    group.shared_planned = 0;
  }
}

// From the last block on, so that of what is cached the tail is taken first.
void Scheduler::release_blocks(SampleState& sample) {
  for (auto block = sample.blocks.rbegin(); block != sample.blocks.rend(); ++block) {
    if (*block != kGoneBlock) pool_.release(*block, prefix_cache_ && index_.holds(*block));
  }
  sample.blocks.clear();
  sample.behind = 0;
  sample.alone = false;
  sample.computed = 0;
  sample.indexed = 0;
  sample.entry = {};
  sample.mixed = false;
  if (sample.status == SampleStatus::kRunning) --running_;
}

// What no later row of the sample sees; the shared blocks stay until all of them are computed,
// since any sample of the group may have to go on with that.
void Scheduler::give_back(const Group& group, SampleState& sample) {
  if (!window_.any() || group.shared_computed < group.shared_positions()) return;
  const std::int32_t behind = window_.behind(group.next_position(sample));
  for (; sample.behind < behind; ++sample.behind) {
    std::int32_t& block = sample.blocks[static_cast<std::size_t>(sample.behind)];
    pool_.release(block, prefix_cache_ && index_.holds(block));
    block = kGoneBlock;
  }
}

// Blocks that those who run will want within four steps or so; entering must leave them.
std::int32_t Scheduler::spare_blocks() const {
  return (running_ + 3) / 4;
}

bool Scheduler::resume(Group& group, SampleState& sample) {
  if (running_ >= sequences_max_) return false;
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
  // Where the prompt is computed, nobody needs what lies behind the window of the next position.
  const bool past = alone || (holder != nullptr ? shared_there : there >= group.shared_positions());
  const std::int32_t behind = past ? window_.behind(there) : 0;
  hits_.erase(hits_.begin(), hits_.begin() + std::max(behind - shared, 0));
  const std::int32_t length = group.length(sample);
  const std::int32_t wanted =
      window_.table(length, alone ? there : std::max(there, group.shared_positions()));
  std::int32_t asked = wanted - shared - found;
  if (window_.any()) {  // what it will hold at a time, less what it begins with
    const std::int32_t all = blocks_for(length) - shared - found;
    asked = std::min(all, std::max(asked, window_.held_max() - (shared + found - behind)));
  }
  if (pool_.free_count() - free_hits() < asked + spare_blocks()) return false;
  sample.blocks.assign(static_cast<std::size_t>(behind), kGoneBlock);
  for (std::int32_t i = behind; i < shared; ++i) {
    const std::int32_t block = holder->blocks[static_cast<std::size_t>(i)];
    pool_.share(block);
    sample.blocks.push_back(block);
  }
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
  hits_.clear();
  if (!group.scores_prompt()) look_up(group, group.at(0), 0);
  const auto found = static_cast<std::int32_t>(hits_.size());
  if (pool_.free_count() - free_hits() < shared - found + samples + spare_blocks()) return false;
  const std::int32_t table_max =
      blocks_for(group.prompt_size() + group.request.sampling.max_new_tokens);
  for (SampleState& sample : group.samples)
    sample.blocks.reserve(static_cast<std::size_t>(table_max));
  SampleState& first = group.at(0);
  take_hits(first);
  count_hits(group.scores_prompt() ? 0 : group.prompt_size(), found);
  for (std::int32_t b = found; b < shared; ++b)
    first.blocks.push_back(take_block());
  group.shared_computed = found * kBlockTokens;
  group.shared_planned = group.shared_computed;
  for (std::int32_t i = 0; i < samples; ++i) {
    SampleState& sample = group.at(i);
    for (std::int32_t b = 0; b < shared && i > 0; ++b) {
      const std::int32_t block = first.blocks[static_cast<std::size_t>(b)];
      pool_.share(block);
      sample.blocks.push_back(block);
    }
    sample.blocks.push_back(take_block());
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
  --unfinished_;
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
  unfinished_ -= found->request.samples - found->count(SampleStatus::kFinished);
  for (SampleState& sample : found->samples)
    release_blocks(sample);
  return found;
}

std::vector<core::GroupId> Scheduler::groups() const {
  std::vector<core::GroupId> ids;
  ids.reserve(active_.size() + waiting_.size());
  for (const auto& group : active_)
    ids.push_back(group->request.id);
  for (const auto& group : waiting_)
    ids.push_back(group->request.id);
  return ids;
}

void Scheduler::release_all() {
  for (std::size_t g = active_.size(); g-- > 0;) {
    Group& group = *active_[g];
    if (!group.forked) {
      requeue(g);
      continue;
    }
    for (SampleState& sample : group.samples) {
      if (sample.status == SampleStatus::kRunning) set_back(group, sample);
    }
  }
}

void Scheduler::new_weights(KvAction action) {
  ++swaps_;
  index_.clear();
  if (action == KvAction::kRecompute) {
    release_all();
    return;
  }
  for (const auto& group : active_) {
    for (SampleState& sample : group->samples)
      sample.mixed = sample.status == SampleStatus::kRunning;
  }
}

}  // namespace troupe::engine
