#include "actors/company/role_gangs.hpp"

#include "actors/company/limits.hpp"
#include "runtime/core/ids.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors::company {
namespace {

using Nodes = std::vector<std::string>;

// A node for each rank from the first on, as far as there are any. No node gets two.
Nodes places_of(const Nodes& ranks,
                const PlacedRoles& roles,
                const NodeOffers& offers,
                core::TimePoint now) {
  Nodes nodes;
  for (const std::string& name : ranks) {
    std::string node = offers.place_for(roles.at(name), roles, now, nodes);
    if (node.empty()) break;
    nodes.push_back(std::move(node));
  }
  return nodes;
}

// All of its ranks are down, and none must wait.
bool may_start(const RoleGang& gang, const PlacedRoles& roles, core::TimePoint now) {
  return std::all_of(gang.names.begin(), gang.names.end(), [&](const std::string& name) {
    const PlacedRole& rank = roles.at(name);
    return rank.state == RoleState::kWanted && now >= rank.not_before;
  });
}

bool are_enough(RoleGang& gang, const Nodes& nodes, const PlacedRoles& roles, core::TimePoint now) {
  const bool all = nodes.size() == gang.names.size();
  // A node of this host comes back; nobody knows whether another host does.
  const bool waits =
      !all && (nodes.empty() || !gang.whole || !roles.at(gang.names[nodes.size()]).bound.empty());
  if (all || waits) {
    gang.short_since.reset();
    return all;
  }
  if (!gang.short_since) gang.short_since = now;
  return now - *gang.short_since >= limits::kGangWait;
}

// Notes that the gang starts with fewer ranks than before.
void fall_short(RoleGang& gang, core::TimePoint now) {
  const core::TimePoint last = std::exchange(gang.fell_short, now);
  const bool again = gang.room > core::Duration::zero() && now - last < limits::kGangRoom_forget;
  gang.room = again ? std::min<core::Duration>(2 * gang.room, limits::kGangRoom_max)
                    : core::Duration(limits::kGangRoom_min);
}

// The gang works with fewer than its ranks, and there is a node for each of the others.
bool has_room(const RoleGang& gang,
              const PlacedRoles& roles,
              const NodeOffers& offers,
              core::TimePoint now) {
  if (gang.size == gang.names.size()) return false;
  Nodes taken;
  for (std::size_t number = 0; number < gang.names.size(); ++number) {
    const PlacedRole& rank = roles.at(gang.names[number]);
    if (number < gang.size) {
      if (rank.state != RoleState::kUp) return false;
      taken.push_back(rank.node);
      continue;
    }
    std::string node = now < rank.not_before ? "" : offers.place_for(rank, roles, now, taken);
    if (node.empty()) return false;
    taken.push_back(std::move(node));
  }
  return true;
}

// Why the ranks that are left of a gang must be taken down; nothing while it is whole.
std::optional<core::Error> why_broken(RoleGang& gang,
                                      const PlacedRoles& roles,
                                      const NodeOffers& offers,
                                      core::TimePoint now) {
  std::uint64_t epoch = 0;  // of the present start
  Nodes taken;
  for (const std::string& name : gang.names) {
    const PlacedRole& rank = roles.at(name);
    if (rank.state == RoleState::kWanted) continue;
    epoch = std::max(epoch, rank.epoch);
    taken.push_back(rank.node);
  }
  if (epoch == 0) return std::nullopt;
  bool torn = false;
  for (std::uint32_t number = 0; number < gang.size; ++number) {
    const PlacedRole& rank = roles.at(gang.names[number]);
    const bool lost = rank.state == RoleState::kWanted && rank.epoch == epoch;
    if (lost || rank.state == RoleState::kStopping)
      return core::Error{core::ErrorCode::kPeerLost, rank.name + " is gone: " + rank.last_cause};
    // After a change of heads a rank may still come with its node, unless it could start anew.
    if (rank.state != RoleState::kWanted) continue;
    torn = true;
    if (!gang.torn_since) gang.torn_since = now;
    const bool late = now - *gang.torn_since >= limits::kGangWait;
    if (late || !offers.place_for(rank, roles, now, taken).empty())
      return core::Error{core::ErrorCode::kPeerLost, rank.name + " did not outlive the last head"};
  }
  if (!torn) gang.torn_since.reset();
  return std::nullopt;
}

}  // namespace

void RoleGangs::add(const std::string& name, PlacedRoles& roles) {
  PlacedRole& placed = roles.at(name);
  RoleGang& gang = gangs_[placed.kind];
  placed.gang = placed.kind;
  placed.rank = gang.size++;
  gang.names.push_back(name);
  for (const std::string& rank : gang.names)
    roles.at(rank).ranks = gang.size;
}

std::string RoleGangs::roomy(const PlacedRoles& roles,
                             const NodeOffers& offers,
                             core::TimePoint now) {
  std::string found;
  for (auto& [kind, gang] : gangs_) {
    if (!has_room(gang, roles, offers, now)) {
      gang.roomy_since.reset();
      continue;
    }
    if (!gang.roomy_since) gang.roomy_since = now;
    if (now - *gang.roomy_since >= gang.room) found = kind;
  }
  return found;
}

void RoleGangs::start_due(PlacedRoles& roles,
                          const NodeOffers& offers,
                          core::TimePoint now,
                          std::vector<PlacedRole>& due) {
  for (auto& [kind, gang] : gangs_) {
    if (!may_start(gang, roles, now)) continue;
    const Nodes nodes = places_of(gang.names, roles, offers, now);
    if (!are_enough(gang, nodes, roles, now)) continue;
    if (nodes.size() < gang.size) fall_short(gang, now);
    gang.size = static_cast<std::uint32_t>(nodes.size());
    gang.whole = gang.whole || nodes.size() == gang.names.size();
    gang.short_since.reset();
    gang.torn_since.reset();
    std::uint64_t last = core::first_epoch(generation_);
    for (const std::string& name : gang.names)
      last = std::max(last, roles.at(name).epoch);
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      PlacedRole& placed = roles.at(gang.names[rank]);
      placed.state = RoleState::kStarting;
      placed.node = nodes[rank];
      placed.epoch = last + 1;
      placed.ranks = gang.size;
      due.push_back(placed);
    }
  }
}

bool RoleGangs::takes(const PlacedRole& rank, std::uint64_t epoch, const PlacedRoles& roles) const {
  if (rank.gang.empty()) return true;
  const RoleGang& gang = gangs_.at(rank.gang);
  return std::all_of(gang.names.begin(), gang.names.end(), [&](const std::string& name) {
    const PlacedRole& other = roles.at(name);
    const bool down = other.state == RoleState::kWanted;
    return down ? other.epoch < epoch : other.epoch == epoch && other.state != RoleState::kStopping;
  });
}

std::vector<RoleGangs::Broken> RoleGangs::break_up(PlacedRoles& roles,
                                                   const NodeOffers& offers,
                                                   core::TimePoint now) {
  std::vector<Broken> all;
  for (auto& [kind, gang] : gangs_) {
    const auto cause = why_broken(gang, roles, offers, now);
    if (!cause) continue;
    for (const std::string& name : gang.names) {
      PlacedRole& rank = roles.at(name);
      if (rank.state != RoleState::kStarting && rank.state != RoleState::kUp) continue;
      rank.state = RoleState::kStopping;
      rank.moves = true;
      rank.last_cause = cause->message;
      all.push_back({rank, *cause});
    }
  }
  return all;
}

}  // namespace troupe::actors::company
