#include "runtime/engine/owner_shares.hpp"

#include "runtime/engine/limits.hpp"

#include <optional>
#include <tuple>
#include <unordered_set>

namespace troupe::engine {
namespace {

bool runs(const SampleState& sample) {
  return sample.status == SampleStatus::kRunning;
}

bool may_leave(const Group& group, const SampleState& sample) {
  const auto drawn = static_cast<std::int64_t>(sample.out.tokens.size()) - sample.seated_at;
  return group.forked && runs(sample) &&
         drawn >= static_cast<std::int64_t>(limits::kEngineSeat_tokens);
}

// The last sample of the last group for which `is_it` holds.
template <class IsIt>
Seat last_seat(const ActiveGroups& active, IsIt is_it) {
  for (std::size_t g = active.size(); g-- > 0;) {
    Group& group = *active[g];
    for (std::int32_t i = group.request.samples; i-- > 0;) {
      if (is_it(group, group.at(i))) return {&group, i};
    }
  }
  return {};
}

}  // namespace

std::map<std::uint32_t, OwnerUse> uses_of(const ActiveGroups& active) {
  std::map<std::uint32_t, OwnerUse> uses;
  for (const auto& group : active) {
    for (const SampleState& sample : group->samples) {
      if (!runs(sample)) continue;
      OwnerUse& use = uses[group->request.owner];
      ++use.samples;
      use.blocks += static_cast<std::int64_t>(sample.blocks.size()) - sample.behind;
    }
  }
  return uses;
}

Seat seat_for(const ActiveGroups& active, const Group& entering, std::int64_t wants, Lack lack) {
  const auto uses = uses_of(active);
  const auto has = [&](std::uint32_t owner) {
    const auto found = uses.find(owner);
    if (found == uses.end()) return std::int64_t{0};
    return lack == Lack::kSeats ? found->second.samples : found->second.blocks;
  };
  const std::uint32_t asks = entering.request.owner;
  std::optional<std::uint32_t> most;
  for (const auto& [owner, use] : uses)
    if (owner != asks && (!most || has(owner) > has(*most))) most = owner;
  if (!most || has(*most) <= has(asks) + wants) return {};
  return last_seat(active, [&](const Group& group, const SampleState& sample) {
    return group.request.owner == *most && group.request.priority >= entering.request.priority &&
           may_leave(group, sample);
  });
}

Seat seat_of_heaviest(const ActiveGroups& active) {
  const auto draws = [](const Group& group, const SampleState& sample) {
    return group.forked && runs(sample);
  };
  const Seat last = last_seat(active, draws);
  if (last.group == nullptr) return last;
  const std::int32_t priority = last.group->request.priority;
  std::map<std::uint32_t, std::int64_t> blocks;
  for (const auto& group : active) {
    if (group->request.priority != priority) continue;
    for (const SampleState& sample : group->samples)
      if (draws(*group, sample))
        blocks[group->request.owner] += static_cast<std::int64_t>(sample.blocks.size());
  }
  std::uint32_t most = last.group->request.owner;
  for (const auto& [owner, its] : blocks)
    if (its > blocks[most]) most = owner;
  return last_seat(active, [&](const Group& group, const SampleState& sample) {
    return group.request.owner == most && group.request.priority == priority &&
           draws(group, sample);
  });
}

Entrant OwnerTurns::next(const ActiveGroups& active, WaitingGroups& waiting) const {
  const auto uses = uses_of(active);
  const auto rank = [&](const Group& group) {
    const auto use = uses.find(group.request.owner);
    const auto entered = entered_.find(group.request.owner);
    return std::tuple(group.request.priority, use == uses.end() ? 0 : use->second.blocks,
                      entered == entered_.end() ? 0 : entered->second);
  };
  Entrant next;
  const auto goes_before = [&](const Group& group) {
    return next.group == nullptr || rank(group) < rank(*next.group);
  };
  for (const auto& group : active) {
    for (SampleState& sample : group->samples) {
      if (sample.status == SampleStatus::kPreempted && goes_before(*group))
        next = {group.get(), &sample, {}};
    }
  }
  std::unordered_set<std::uint32_t> seen;  // the first of each owner goes before its others
  for (auto at = waiting.begin(); at != waiting.end(); ++at) {
    if (seen.insert((*at)->request.owner).second && goes_before(**at))
      next = {at->get(), nullptr, at};
  }
  return next;
}

}  // namespace troupe::engine
