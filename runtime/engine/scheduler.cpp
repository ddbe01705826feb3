#include "runtime/engine/scheduler.hpp"

#include "runtime/core/check.hpp"
#include "runtime/engine/limits.hpp"

#include <algorithm>

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
      slices_(sequences_max, step_tokens_max) {}

void Scheduler::submit(std::unique_ptr<Group> group) {
  const core::CheckedChange checked(*this);
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
  const core::CheckedChange checked(*this);
  slices_.begin(active_);
  grow_tables();
  if (shared_) enter_shared();
  slices_.add_running(active_);
  if (!shared_) enter();
  TROUPE_CHECK(!slices_.slices().empty() || idle(), "unfinished groups and nothing to compute");
  return slices_.slices();
}

// Resumes preempted samples before it admits groups that are not more urgent, each in order of
// submission.
void Scheduler::enter() {
  const auto admit = [&] {
    Group* const group = slices_.full() ? nullptr : admit_next();
    if (group != nullptr) slices_.add(*group, 0);
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
      if (slices_.full() || !resume(*group, sample)) return;
      slices_.add(*group, i);
    }
  }
  while (admit()) {
  }
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

Group* Scheduler::admit(WaitingGroups::iterator waiting) {
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
    const auto [next, sample, place] = owners_.next(active_, waiting_);
    if (next == nullptr) return;
    const std::int32_t seats = sample != nullptr ? 1 : next->request.samples;
    const bool enters = sample != nullptr ? resume(*next, *sample) : admit(place) != nullptr;
    if (enters) {
      owners_.entered(next->request.owner);
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
  const core::CheckedChange checked(*this);
  SampleState& state = group.at(sample);
  release(state);
  state.status = SampleStatus::kFinished;
  --unfinished_;
  if (group.count(SampleStatus::kRunning) == 0) group.shared_computed = 0;
}

void Scheduler::sweep() {
  const core::CheckedChange checked(*this);
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
  const core::CheckedChange checked(*this);
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
  const core::CheckedChange checked(*this);
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
  const core::CheckedChange checked(*this);
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

std::string Scheduler::check_invariants() const {
  std::vector<std::int32_t> held;
  std::int32_t running = 0;
  std::int64_t unfinished = 0;
  std::string broken;
  const auto look = [&](const Group& group, bool active) {
    for (const SampleState& sample : group.samples) {
      const bool runs = sample.status == SampleStatus::kRunning;
      running += runs ? 1 : 0;
      unfinished += sample.status == SampleStatus::kFinished ? 0 : 1;
      if (runs && !active) broken = "a sample of a group that waits runs";
      if (!runs && !sample.blocks.empty()) broken = "a sample that does not run holds blocks";
      if (sample.computed > group.length(sample)) broken = "more is computed than there is";
      for (const std::int32_t block : sample.blocks)
        if (block != kGoneBlock) held.push_back(block);
    }
  };
  for (const auto& group : waiting_)
    look(*group, false);
  for (const auto& group : active_)
    look(*group, true);
  if (!broken.empty()) return broken;
  if (running != running_ || running > sequences_max_) {
    return std::to_string(running) + " samples run, " + std::to_string(running_) +
           " are counted, there may be " + std::to_string(sequences_max_);
  }
  if (unfinished != unfinished_) {
    return std::to_string(unfinished) + " samples are unfinished, " + std::to_string(unfinished_) +
           " are counted";
  }
  return tables_.check_invariants(std::move(held));
}

}  // namespace troupe::engine
