#include "runtime/engine/scheduler.hpp"

#include "runtime/core/check.hpp"
#include "runtime/engine/limits.hpp"
#include "runtime/engine/owner_shares.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace troupe::engine {
namespace {

// Whether the group goes before those of the priority, and the other way round.
constexpr auto kGoesBefore = [](const std::unique_ptr<Group>& group, std::int32_t priority) {
  return group->request.priority < priority;
};
constexpr auto kGoesAfter = [](std::int32_t priority, const std::unique_ptr<Group>& group) {
  return priority < group->request.priority;
};

}  // namespace

Scheduler::Scheduler(std::int32_t blocks,
                     std::int32_t sequences_max,
                     std::int32_t step_tokens_max,
                     bool prefix_cache,
                     std::int32_t window)
    : tables_(blocks, prefix_cache, {window, step_tokens_max}),
      sequences_max_(sequences_max),
      step_tokens_max_(step_tokens_max) {
  slices_.reserve(static_cast<std::size_t>(sequences_max));
  decode_.reserve(static_cast<std::size_t>(sequences_max));
}

void Scheduler::submit(std::unique_ptr<Group> group) {
  unfinished_ += group->request.samples;
  shared_ = shared_ || group->request.owner != 0;
  const auto place =
      std::upper_bound(waiting_.begin(), waiting_.end(), group->request.priority, kGoesAfter);
  waiting_.insert(place, std::move(group));
}

bool Scheduler::queue_full() const {
  return waiting_.size() >= limits::kEngineQueue_groups_max;
}

std::span<const Slice> Scheduler::schedule() {
  slices_.clear();
  for (const auto& group : active_)
    group->shared_planned = group->shared_computed;
  grow_tables();
  if (shared_) enter_shared();
  std::int32_t rest = step_tokens_max_ - schedule_decode(step_tokens_max_);
  schedule_running(rest);
  if (!shared_) schedule_entering(rest);
  TROUPE_CHECK(!slices_.empty() || idle(), "unfinished groups and nothing to compute");
  return slices_;
}

std::int32_t Scheduler::schedule_decode(std::int32_t budget) {
  decode_.clear();
  for (const auto& group : active_) {
    for (std::int32_t i = 0; i < group->request.samples; ++i) {
      if (group->decodes(group->at(i))) decode_.emplace_back(group.get(), i);
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
      if (sample.status != SampleStatus::kRunning || group->decodes(sample)) continue;
      add_slice(*group, i, rest);
    }
  }
}

// Resumes preempted samples before it admits groups that are not more urgent, each in order of
// submission.
void Scheduler::schedule_entering(std::int32_t& rest) {
  const auto admit = [&] {
    Group* const group = rest > 0 ? admit_next() : nullptr;
    if (group != nullptr) add_slice(*group, 0, rest);
    return group != nullptr;
  };
  entering_.clear();
  for (const auto& group : active_)
    entering_.push_back(group.get());
  for (Group* const group : entering_) {
    for (std::int32_t i = 0; i < group->request.samples; ++i) {
      SampleState& sample = group->at(i);
      if (sample.status != SampleStatus::kPreempted) continue;
      while (more_urgent_waits(*group)) {
        if (!admit()) return;
      }
      if (rest <= 0 || !resume(*group, sample)) return;
      add_slice(*group, i, rest);
    }
  }
  while (admit()) {
  }
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

// Gives every running sample its blocks for this step, in the order of active_. Preempts the last
// sample in that order if no block is free.
void Scheduler::grow_tables() {
  for (std::size_t g = 0; g < active_.size(); ++g) {
    Group& group = *active_[g];
    if (!group.forked) continue;
    for (SampleState& sample : group.samples) {
      while (sample.status == SampleStatus::kRunning && !tables_.grow(group, sample))
        preempt_youngest();
    }
  }
}

// Preempts the last running sample of the last group that has one. If the prompt of that group
// is not computed yet, the whole group returns to the queue.
void Scheduler::preempt_youngest() {
  const Group* const heaviest = shared_ ? seat_of_heaviest(active_).group : nullptr;
  for (std::size_t g = active_.size(); g-- > 0;) {
    Group& group = *active_[g];
    if (group.count(SampleStatus::kRunning) == 0 || (heaviest && &group != heaviest)) continue;
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

// Returns an active group whose prompt is not computed yet to the front of its part of the queue.
void Scheduler::requeue(std::size_t active) {
  std::unique_ptr<Group> group = std::move(active_[active]);
  active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(active));
  for (SampleState& sample : group->samples) {
    set_back(*group, sample);
    sample.status = SampleStatus::kWaiting;
  }
  const auto place =
      std::lower_bound(waiting_.begin(), waiting_.end(), group->request.priority, kGoesBefore);
  waiting_.insert(place, std::move(group));
}

// Takes the sample's blocks; it must be computed again.
void Scheduler::set_back(Group& group, SampleState& sample) {
  release(sample);
  sample.status = SampleStatus::kPreempted;
  if (!group.forked) {  // the prompt will be scored again
    sample.out.prompt_logprobs.clear();
    sample.out.prompt_top_logprobs.clear();
  }
  if (group.count(SampleStatus::kRunning) == 0) {
    group.shared_computed = 0;
    group.shared_planned = 0;
  }
}

void Scheduler::release(SampleState& sample) {
  tables_.release(sample);
  if (sample.status == SampleStatus::kRunning) --running_;
}

bool Scheduler::resume(Group& group, SampleState& sample) {
  if (running_ >= sequences_max_ || !tables_.resume(group, sample, spare_blocks())) return false;
  sample.status = SampleStatus::kRunning;
  sample.seated_at = static_cast<std::int32_t>(sample.out.tokens.size());
  ++running_;
  return true;
}

bool Scheduler::more_urgent_waits(const Group& than) const {
  return !waiting_.empty() && waiting_.front()->request.priority < than.request.priority;
}

// The group that it admits, or null.
Group* Scheduler::admit_next() {
  return waiting_.empty() ? nullptr : admit(waiting_.begin());
}

Group* Scheduler::admit(std::deque<std::unique_ptr<Group>>::iterator waiting) {
  Group& group = **waiting;
  if (group.request.samples > sequences_max_ - running_) return nullptr;
  if (!tables_.admit(group, spare_blocks())) return nullptr;
  for (SampleState& sample : group.samples)
    sample.status = SampleStatus::kRunning;
  running_ += group.request.samples;
  const auto place =
      std::upper_bound(active_.begin(), active_.end(), group.request.priority, kGoesAfter);
  active_.insert(place, std::move(*waiting));
  waiting_.erase(waiting);
  return &group;
}

// Lets samples and groups of several owners enter, the lightest owner's first. What does not fit,
// though another owner has more, takes a seat of that one; else all behind it wait.
void Scheduler::enter_shared() {
  for (;;) {
    const auto uses = uses_of(active_);
    const auto rank = [&](const Group& group) {
      const auto use = uses.find(group.request.owner);
      const auto entered = entered_.find(group.request.owner);
      return std::tuple(group.request.priority, use == uses.end() ? 0 : use->second.blocks,
                        entered == entered_.end() ? 0 : entered->second);
    };
    Group* next = nullptr;
    SampleState* sample = nullptr;  // of `next`, if it goes on
    for (const auto& group : active_) {
      for (SampleState& one : group->samples) {
        if (one.status != SampleStatus::kPreempted) continue;
        if (next != nullptr && rank(*group) >= rank(*next)) continue;
        next = group.get();
        sample = &one;
      }
    }
    auto place = waiting_.end();
    std::unordered_set<std::uint32_t> seen;  // the first of each owner goes before its others
    for (auto waiting = waiting_.begin(); waiting != waiting_.end(); ++waiting) {
      if (!seen.insert((*waiting)->request.owner).second) continue;
      if (next != nullptr && rank(**waiting) >= rank(*next)) continue;
      next = waiting->get();
      sample = nullptr;
      place = waiting;
    }
    if (next == nullptr) return;
    const std::int32_t seats = sample != nullptr ? 1 : next->request.samples;
    const bool enters = sample != nullptr ? resume(*next, *sample) : admit(place) != nullptr;
    if (enters) {
      entered_[next->request.owner] = ++turns_;
      continue;
    }
    const bool seated = seats <= sequences_max_ - running_;
    const std::int64_t blocks =
        sample != nullptr ? blocks_for(next->length(*sample)) : next->shared_blocks() + seats;
    const Seat seat =
        seat_for(active_, *next, seated ? blocks : seats, seated ? Lack::kBlocks : Lack::kSeats);
    if (seat.group == nullptr) return;
    set_back(*seat.group, seat.group->at(seat.sample));
    ++preempted_;
  }
}

void Scheduler::finish(Group& group, std::int32_t sample) {
  SampleState& state = group.at(sample);
  release(state);
  state.status = SampleStatus::kFinished;
  --unfinished_;
  if (group.count(SampleStatus::kRunning) == 0) group.shared_computed = 0;
}

void Scheduler::sweep() {
  std::erase_if(active_, [](const std::unique_ptr<Group>& group) {
    return group->count(SampleStatus::kFinished) == group->request.samples;
  });
}

Group* Scheduler::find(core::GroupId id) const {
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
    release(sample);
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
  tables_.new_weights();
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
