#include "actors/company/role_placement.hpp"

#include "actors/company/limits.hpp"
#include "actors/controller/limits.hpp"
#include "runtime/core/checked_change.hpp"
#include "runtime/core/ids.hpp"

#include <algorithm>

namespace troupe::actors::company {
namespace {

// True when the role was lost too often in a short time.
bool is_worn(const PlacedRole& placed, core::TimePoint now) {
  const auto recent = std::count_if(placed.losses.begin(), placed.losses.end(), [&](auto when) {
    return now - when <= limits::kRestartWindow;
  });
  return static_cast<std::uint64_t>(recent) >= limits::kRestarts_max;
}

// How long a role that was taken down as sick stays down.
core::Duration sick_pause(PlacedRole& placed, core::TimePoint now) {
  const core::TimePoint last = std::exchange(placed.last_sick, now);
  const bool long_ago =
      placed.sick_pause == core::Duration::zero() || now - last > limits::kSickForget;
  if (long_ago) {
    placed.sick_pause = limits::kSickPause_min;
    return controller::limits::kRestartAfter;
  }
  const core::Duration pause = placed.sick_pause;
  placed.sick_pause = std::min<core::Duration>(2 * pause, limits::kSickPause_max);
  placed.last_sick = std::max(now, last + pause);
  return std::max<core::Duration>(last + pause - now, controller::limits::kRestartAfter);
}

}  // namespace

void RolePlacement::want(std::string kind, std::string name, std::string bound, bool guest) {
  const core::CheckedChange checked(*this);
  PlacedRole placed{
      .kind = std::move(kind), .name = name, .bound = std::move(bound), .guest = guest};
  roles_.emplace(std::move(name), std::move(placed));
}

void RolePlacement::want_rank(const std::string& kind, std::string name, std::string bound) {
  want(kind, name, std::move(bound));
  gangs_.add(name, roles_);
}

std::vector<std::string> RolePlacement::node_out(const std::string& node,
                                                 const core::Error& cause,
                                                 core::TimePoint now) {
  const core::CheckedChange checked(*this);
  offers_.remove(node);
  std::vector<std::string> gone;
  for (auto& [name, placed] : roles_) {
    if (placed.node != node || placed.state == RoleState::kWanted) continue;
    const bool was_up = placed.state == RoleState::kUp;
    lost(name, placed.epoch, cause, now);
    if (was_up) gone.push_back(name);
  }
  return gone;
}

void RolePlacement::explain(const std::string& node, const core::Error& cause) {
  for (auto& [name, placed] : roles_) {
    if (placed.bound != node || placed.state != RoleState::kWanted || placed.losses.empty())
      continue;
    placed.last_cause = cause.message;
    placed.last_code = cause.code;
  }
}

std::vector<PlacedRole> RolePlacement::start_due(core::TimePoint now) {
  const core::CheckedChange checked(*this);
  std::vector<PlacedRole> due;
  for (auto& [name, placed] : roles_) {
    if (placed.state != RoleState::kWanted || now < placed.not_before) continue;
    if (!placed.gang.empty()) continue;
    const std::string node = offers_.place_for(placed, roles_, now);
    if (node.empty()) continue;
    placed.state = RoleState::kStarting;
    placed.node = node;
    placed.epoch = std::max(placed.epoch, core::first_epoch(generation_)) + 1;
    due.push_back(placed);
  }
  gangs_.start_due(roles_, offers_, now, due);
  return due;
}

bool RolePlacement::adopt(const std::string& name, const std::string& node, std::uint64_t epoch) {
  const core::CheckedChange checked(*this);
  PlacedRole* const placed = core::find_value(roles_, name);
  if (placed == nullptr || placed->state != RoleState::kWanted) return false;
  if (!placed->bound.empty() && placed->bound != node) return false;
  if (core::generation_of(epoch) >= generation_ || epoch <= placed->epoch) return false;
  if (!gangs_.takes(*placed, epoch, roles_)) return false;
  gangs_.taken(*placed);
  placed->state = RoleState::kStarting;
  placed->node = node;
  placed->epoch = epoch;
  return true;
}

PlacedRole* RolePlacement::of_epoch(const std::string& name, std::uint64_t epoch) {
  PlacedRole* const placed = core::find_value(roles_, name);
  return placed == nullptr || placed->epoch != epoch ? nullptr : placed;
}

bool RolePlacement::up(const std::string& name, std::uint64_t epoch) {
  const core::CheckedChange checked(*this);
  PlacedRole* const placed = of_epoch(name, epoch);
  if (placed == nullptr || placed->state != RoleState::kStarting) return false;
  placed->state = RoleState::kUp;
  placed->sick = false;
  return true;
}

bool RolePlacement::stop(const std::string& name, std::uint64_t epoch, const core::Error& cause) {
  const core::CheckedChange checked(*this);
  PlacedRole* const placed = of_epoch(name, epoch);
  if (placed == nullptr || placed->state != RoleState::kUp) return false;
  placed->state = RoleState::kStopping;
  placed->last_cause = cause.message;
  return true;
}

void RolePlacement::clear(const std::string& name) {
  PlacedRole* const placed = core::find_value(roles_, name);
  if (placed == nullptr) return;
  placed->losses.clear();
  placed->sick_pause = core::Duration::zero();
  placed->sick = false;
  placed->not_before = {};
}

bool RolePlacement::move(const std::string& name, std::uint64_t epoch, const core::Error& cause) {
  const core::CheckedChange checked(*this);
  if (!stop(name, epoch, cause)) return false;
  of_epoch(name, epoch)->moves = true;
  return true;
}

std::vector<PlacedRole> RolePlacement::stop_all() {
  const core::CheckedChange checked(*this);
  std::vector<PlacedRole> all;
  for (auto& [name, placed] : roles_) {
    if (placed.state == RoleState::kWanted) continue;
    all.push_back(placed);
    if (placed.state != RoleState::kStopping) placed.moves = true;
    placed.state = RoleState::kStopping;
  }
  return all;
}

bool RolePlacement::lost(const std::string& name,
                         std::uint64_t epoch,
                         const core::Error& cause,
                         core::TimePoint now) {
  const core::CheckedChange checked(*this);
  PlacedRole* const found = of_epoch(name, epoch);
  if (found == nullptr || found->state == RoleState::kWanted) return false;
  PlacedRole& placed = *found;
  const bool taken_down = std::exchange(placed.state, RoleState::kWanted) == RoleState::kStopping;
  placed.node.clear();
  if (std::exchange(placed.moves, false)) {
    placed.not_before = now;
    return true;
  }
  placed.sick = taken_down;
  if (taken_down) {
    placed.not_before = now + sick_pause(placed, now);
    return true;
  }
  placed.last_cause = cause.message;
  placed.last_code = cause.code;
  placed.losses.push_back(now);
  while (!placed.losses.empty() && now - placed.losses.front() > limits::kRestartWindow) {
    placed.losses.pop_front();
  }
  // kRestartAfter after the first loss, doubling.
  const auto doublings = std::min<std::size_t>(placed.losses.size() - 1, 6);
  const auto pause = std::min<core::Duration>(controller::limits::kRestartAfter * (1 << doublings),
                                              limits::kRestartAfter_max);
  placed.not_before = now + (is_worn(placed, now) ? limits::kRestartRest : pause);
  return true;
}

void RolePlacement::retire(const std::string& name) {
  const core::CheckedChange checked(*this);
  PlacedRole* const placed = core::find_value(roles_, name);
  if (placed == nullptr) return;
  placed->state = RoleState::kWanted;
  placed->node.clear();
  placed->moves = false;
}

std::vector<RolePlacement::Broken> RolePlacement::break_up(core::TimePoint now) {
  const core::CheckedChange checked(*this);
  return gangs_.break_up(roles_, offers_, now);
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

std::string RolePlacement::check_invariants() const {
  std::set<std::pair<std::string, std::string>> of_gangs;  // kind and node
  for (const auto& [name, placed] : roles_) {
    if (placed.name != name) return name + " has another name";
    if (placed.state == RoleState::kWanted) continue;
    if (placed.epoch == 0 || placed.node.empty()) return name + " is nowhere and not wanted";
    // A node's roles are adopted before it is added.
    const bool brought =
        placed.state == RoleState::kStarting && core::generation_of(placed.epoch) < generation_;
    if (!brought && !offers_.has(placed.node))
      return name + " is at " + placed.node + ", which is not in";
    if (!placed.bound.empty() && placed.bound != placed.node)
      return name + " is at " + placed.node + " and bound to " + placed.bound;
    if (!placed.gang.empty() && !of_gangs.emplace(placed.gang, placed.node).second)
      return "two ranks of " + placed.gang + " are at " + placed.node;
  }
  return "";
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
    if (!placed.gang.empty() && !gangs_.has(placed)) continue;
    if (placed.state != RoleState::kUp) return false;
    any = true;
  }
  return any;
}

}  // namespace troupe::actors::company
