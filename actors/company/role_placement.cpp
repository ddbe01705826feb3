#include "actors/company/role_placement.hpp"

#include "actors/limits.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

// Lost too often in a short time.
bool is_worn(const PlacedRole& placed, core::TimePoint now) {
  const auto recent = std::count_if(placed.losses.begin(), placed.losses.end(), [&](auto when) {
    return now - when <= limits::kRestartWindow;
  });
  return static_cast<std::uint64_t>(recent) >= limits::kRestarts_max;
}

}  // namespace

void RolePlacement::want(std::string kind, std::string name, std::string bound, bool guest) {
  PlacedRole placed;
  placed.kind = std::move(kind);
  placed.name = name;
  placed.bound = std::move(bound);
  placed.guest = guest;
  roles_.emplace(std::move(name), std::move(placed));
}

bool RolePlacement::drop(const std::string& name) {
  const auto found = roles_.find(name);
  if (found == roles_.end()) return false;
  const bool held = found->second.state != RoleState::kWanted;
  roles_.erase(found);
  return held;
}

void RolePlacement::node_in(const std::string& node, std::vector<std::string> kinds) {
  nodes_[node] = std::move(kinds);
}

std::vector<std::string> RolePlacement::node_out(const std::string& node,
                                                 const core::Error& cause,
                                                 core::TimePoint now) {
  nodes_.erase(node);
  std::erase_if(strikes_, [&node](const auto& entry) { return entry.first.first == node; });
  std::vector<std::string> gone;
  for (auto& [name, placed] : roles_) {
    if (placed.node != node || placed.state == RoleState::kWanted) continue;
    const bool was_up = placed.state == RoleState::kUp;
    lost(name, placed.epoch, cause, now);
    if (was_up) gone.push_back(name);
  }
  return gone;
}

void RolePlacement::strike(const std::string& node,
                           const std::string& kind,
                           core::TimePoint until) {
  strikes_[{node, kind}] = until;
}

bool RolePlacement::has_candidate(const std::string& kind) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    const auto& [node, kinds] = entry;
    const auto struck = strikes_.find({node, kind});
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end() &&
           (struck == strikes_.end() || struck->second != core::TimePoint::max());
  });
}

// The node bound to the placed, or the one that offers its kind and plays fewest roles.
std::string RolePlacement::place_for(const PlacedRole& placed, core::TimePoint now) const {
  std::string best;
  std::size_t fewest = 0;
  for (const auto& [node, kinds] : nodes_) {
    if (!placed.bound.empty() && placed.bound != node) continue;
    if (std::find(kinds.begin(), kinds.end(), placed.kind) == kinds.end()) continue;
    const auto struck = strikes_.find({node, placed.kind});
    if (struck != strikes_.end() && now < struck->second) continue;
    const auto holds = static_cast<std::size_t>(
        std::count_if(roles_.begin(), roles_.end(), [&](const auto& other) {
          return other.second.node == node && other.second.state != RoleState::kWanted;
        }));
    if (best.empty() || holds < fewest) {
      best = node;
      fewest = holds;
    }
  }
  return best;
}

std::vector<PlacedRole> RolePlacement::start_due(core::TimePoint now) {
  std::vector<PlacedRole> due;
  for (auto& [name, placed] : roles_) {
    if (placed.state != RoleState::kWanted || now < placed.not_before) continue;
    const std::string node = place_for(placed, now);
    if (node.empty()) continue;
    placed.state = RoleState::kStarting;
    placed.node = node;
    ++placed.epoch;
    due.push_back(placed);
  }
  return due;
}

bool RolePlacement::up(const std::string& name, std::uint64_t epoch) {
  const auto found = roles_.find(name);
  if (found == roles_.end() || found->second.epoch != epoch ||
      found->second.state != RoleState::kStarting) {
    return false;
  }
  found->second.state = RoleState::kUp;
  return true;
}

bool RolePlacement::stop(const std::string& name, std::uint64_t epoch, const core::Error& cause) {
  const auto found = roles_.find(name);
  if (found == roles_.end() || found->second.epoch != epoch ||
      found->second.state != RoleState::kUp) {
    return false;
  }
  found->second.state = RoleState::kStopping;
  found->second.last_cause = cause.message;
  return true;
}

bool RolePlacement::lost(const std::string& name,
                         std::uint64_t epoch,
                         const core::Error& cause,
                         core::TimePoint now) {
  const auto found = roles_.find(name);
  if (found == roles_.end() || found->second.epoch != epoch ||
      found->second.state == RoleState::kWanted) {
    return false;
  }
  PlacedRole& placed = found->second;
  if (placed.state != RoleState::kStopping) placed.last_cause = cause.message;
  placed.state = RoleState::kWanted;
  placed.node.clear();
  placed.losses.push_back(now);
  while (!placed.losses.empty() && now - placed.losses.front() > limits::kRestartWindow) {
    placed.losses.pop_front();
  }
  // 100 ms after the first loss, doubling.
  const auto doublings = std::min<std::size_t>(placed.losses.size() - 1, 6);
  const auto pause =
      std::min<core::Duration>(limits::kRestartAfter * (1 << doublings), limits::kRestartAfter_max);
  placed.not_before = now + (is_worn(placed, now) ? limits::kRestartRest : pause);
  return true;
}

void RolePlacement::retire(const std::string& name) {
  const auto found = roles_.find(name);
  if (found == roles_.end()) return;
  found->second.state = RoleState::kWanted;
  found->second.node.clear();
}

std::optional<PlacedRole> RolePlacement::hopeless(core::TimePoint now) const {
  const bool a_generator_holds =
      std::any_of(roles_.begin(), roles_.end(), [now](const auto& entry) {
        return entry.second.kind == "generator" && !is_worn(entry.second, now);
      });
  for (const auto& [name, placed] : roles_) {
    if (placed.bound.empty() || placed.guest || !is_worn(placed, now)) continue;
    if (placed.kind != "generator" || !a_generator_holds) return placed;
  }
  return std::nullopt;
}

const PlacedRole* RolePlacement::find(const std::string& name) const {
  const auto found = roles_.find(name);
  return found == roles_.end() ? nullptr : &found->second;
}

bool RolePlacement::any_up(const std::string& kind) const {
  return std::any_of(roles_.begin(), roles_.end(), [&kind](const auto& entry) {
    return entry.second.kind == kind && entry.second.state == RoleState::kUp;
  });
}

bool RolePlacement::all_up(const std::string& kind) const {
  bool any = false;
  for (const auto& [name, placed] : roles_) {
    if (placed.kind != kind) continue;
    if (placed.state != RoleState::kUp) return false;
    any = true;
  }
  return any;
}

}  // namespace troupe::actors
