// The gangs of a company: ranks that start together, and are taken down together.
#include "actors/company/role_placement.hpp"
#include "actors/limits.hpp"
#include "runtime/core/ids.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors {

void RolePlacement::want_rank(const std::string& kind, std::string name, std::string bound) {
  Gang& gang = gangs_[kind];
  want(kind, name, std::move(bound));
  PlacedRole& placed = roles_.at(name);
  placed.gang = kind;
  placed.rank = gang.size++;
  gang.names.push_back(std::move(name));
  for (const std::string& rank : gang.names)
    roles_.at(rank).ranks = gang.size;
}

// All of its ranks are down, and none must wait.
bool RolePlacement::may_start(const Gang& gang, core::TimePoint now) const {
  return std::all_of(gang.names.begin(), gang.names.end(), [&](const std::string& name) {
    const PlacedRole& rank = roles_.at(name);
    return rank.state == RoleState::kWanted && now >= rank.not_before;
  });
}

// A node for each rank from the first on, as far as there are any. No node gets two.
RolePlacement::Nodes RolePlacement::places_of(const Gang& gang, core::TimePoint now) const {
  Nodes nodes;
  for (const std::string& name : gang.names) {
    std::string node = place_for(roles_.at(name), now, nodes);
    if (node.empty()) break;
    nodes.push_back(std::move(node));
  }
  return nodes;
}

bool RolePlacement::are_enough(Gang& gang, const Nodes& nodes, core::TimePoint now) const {
  const bool all = nodes.size() == gang.names.size();
  // A node of this host comes back; nobody knows whether another host does.
  const bool waits =
      !all && (nodes.empty() || !gang.whole || !roles_.at(gang.names[nodes.size()]).bound.empty());
  if (all || waits) {
    gang.short_since.reset();
    return all;
  }
  if (!gang.short_since) gang.short_since = now;
  return now - *gang.short_since >= limits::kGangWait;
}

// Notes that the gang starts with fewer ranks than before.
void RolePlacement::fall_short(Gang& gang, core::TimePoint now) {
  const core::TimePoint last = std::exchange(gang.fell_short, now);
  const bool again = gang.room > core::Duration::zero() && now - last < limits::kGangRoom_forget;
  gang.room = again ? std::min<core::Duration>(2 * gang.room, limits::kGangRoom_max)
                    : core::Duration(limits::kGangRoom_min);
}

// It works with fewer than its ranks, and there is a node for each of the others.
bool RolePlacement::has_room(const Gang& gang, core::TimePoint now) const {
  if (gang.size == gang.names.size()) return false;
  Nodes taken;
  for (std::size_t number = 0; number < gang.names.size(); ++number) {
    const PlacedRole& rank = roles_.at(gang.names[number]);
    if (number < gang.size) {
      if (rank.state != RoleState::kUp) return false;
      taken.push_back(rank.node);
      continue;
    }
    std::string node = now < rank.not_before ? "" : place_for(rank, now, taken);
    if (node.empty()) return false;
    taken.push_back(std::move(node));
  }
  return true;
}

std::string RolePlacement::roomy(core::TimePoint now) {
  std::string found;
  for (auto& [kind, gang] : gangs_) {
    if (!has_room(gang, now)) {
      gang.roomy_since.reset();
      continue;
    }
    if (!gang.roomy_since) gang.roomy_since = now;
    if (now - *gang.roomy_since >= gang.room) found = kind;
  }
  return found;
}

void RolePlacement::start_gangs(core::TimePoint now, std::vector<PlacedRole>& due) {
  for (auto& [kind, gang] : gangs_) {
    if (!may_start(gang, now)) continue;
    const Nodes nodes = places_of(gang, now);
    if (!are_enough(gang, nodes, now)) continue;
    if (nodes.size() < gang.size) fall_short(gang, now);
    gang.size = static_cast<std::uint32_t>(nodes.size());
    gang.whole = gang.whole || nodes.size() == gang.names.size();
    gang.short_since.reset();
    gang.torn_since.reset();
    std::uint64_t last = core::first_epoch(generation_);
    for (const std::string& name : gang.names)
      last = std::max(last, roles_.at(name).epoch);
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      PlacedRole& placed = roles_.at(gang.names[rank]);
      placed.state = RoleState::kStarting;
      placed.node = nodes[rank];
      placed.epoch = last + 1;
      placed.ranks = gang.size;
      due.push_back(placed);
    }
  }
}

// Whether a rank that an earlier head started with this epoch may be taken over: only with the
// others of the same start.
bool RolePlacement::gang_takes(const PlacedRole& rank, std::uint64_t epoch) const {
  if (rank.gang.empty()) return true;
  const Gang& gang = gangs_.at(rank.gang);
  return std::all_of(gang.names.begin(), gang.names.end(), [&](const std::string& name) {
    const PlacedRole& other = roles_.at(name);
    const bool down = other.state == RoleState::kWanted;
    return down ? other.epoch < epoch : other.epoch == epoch && other.state != RoleState::kStopping;
  });
}

// Why the ranks that are left of a gang must be taken down; nothing while it is whole.
std::optional<core::Error> RolePlacement::why_broken(Gang& gang, core::TimePoint now) const {
  std::uint64_t epoch = 0;  // of the present start
  Nodes taken;
  for (const std::string& name : gang.names) {
    const PlacedRole& rank = roles_.at(name);
    if (rank.state == RoleState::kWanted) continue;
    epoch = std::max(epoch, rank.epoch);
    taken.push_back(rank.node);
  }
  if (epoch == 0) return std::nullopt;
  bool torn = false;
  for (std::uint32_t number = 0; number < gang.size; ++number) {
    const PlacedRole& rank = roles_.at(gang.names[number]);
    const bool lost = rank.state == RoleState::kWanted && rank.epoch == epoch;
    if (lost || rank.state == RoleState::kStopping)
      return core::Error{core::ErrorCode::kPeerLost, rank.name + " is gone: " + rank.last_cause};
    // After a change of heads a rank may still come with its node, unless it could start anew.
    if (rank.state != RoleState::kWanted) continue;
    torn = true;
    if (!gang.torn_since) gang.torn_since = now;
    const bool late = now - *gang.torn_since >= limits::kGangWait;
    if (late || !place_for(rank, now, taken).empty())
      return core::Error{core::ErrorCode::kPeerLost, rank.name + " did not outlive the last head"};
  }
  if (!torn) gang.torn_since.reset();
  return std::nullopt;
}

std::vector<RolePlacement::Broken> RolePlacement::break_up(core::TimePoint now) {
  std::vector<Broken> all;
  for (auto& [kind, gang] : gangs_) {
    const auto cause = why_broken(gang, now);
    if (!cause) continue;
    for (const std::string& name : gang.names) {
      PlacedRole& rank = roles_.at(name);
      if (rank.state != RoleState::kStarting && rank.state != RoleState::kUp) continue;
      rank.state = RoleState::kStopping;
      rank.moves = true;
      rank.last_cause = cause->message;
      all.push_back({rank, *cause});
    }
  }
  return all;
}

}  // namespace troupe::actors
