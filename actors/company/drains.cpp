#include "actors/company/drains.hpp"

#include "actors/company/limits.hpp"

#include <algorithm>

namespace troupe::actors::company {
namespace {

core::Failure refuse(const std::string& node,
                     const std::string& why,
                     std::string_view advice = {}) {
  return core::fail(core::ErrorCode::kInvalidArgument, node + " cannot be drained: " + why, advice);
}

bool another_generator(const std::string& node, const RolePlacement& placement) {
  const auto& roles = placement.roles();
  return std::any_of(roles.begin(), roles.end(), [&](const auto& entry) {
    const PlacedRole& other = entry.second;
    return other.kind == "generator" && other.state == RoleState::kUp && other.node != node &&
           !placement.is_drained(other.node);
  });
}

core::Result<void> may_move(const PlacedRole& placed,
                            const std::string& node,
                            const RolePlacement& placement) {
  const std::string& kind = placed.kind;
  if (kind == "policy" || kind == "critic") {
    return refuse(
        node, "it has " + placed.name + ", and with it what the run has learned",
        "Ctrl-C on the run saves that, then start the run again with the " + kind + " elsewhere");
  }
  if (kind == "generator") {
    if (another_generator(node, placement)) return {};
    return refuse(node, "no other node has a generator that is up",
                  "start one first, with `troupe node --roles generator`");
  }
  if (kind == kAttachedEnvironment) return {};
  if (!placed.bound.empty()) {
    return refuse(
        node, "the run is configured to have " + placed.name + " there",
        "stop the run with Ctrl-C, then start it again with --cluster.local_roles without " + kind +
            " and a `troupe node --roles " + kind + "`");
  }
  if (placement.has_candidate(kind, node)) return {};
  return refuse(node, "no other node can take " + placed.name,
                "start one first, with `troupe node --roles " + kind + "`");
}

}  // namespace

core::Result<void> may_leave(const std::string& node,
                             const RolePlacement& placement,
                             const std::map<std::string, std::string>& brought) {
  for (const auto& [name, placed] : placement.roles()) {
    if (placed.node == node || placed.bound == node) TROUPE_TRY(may_move(placed, node, placement));
  }
  for (const auto& [role, bringer] : brought) {
    if (bringer != node || !role.starts_with("reward/")) continue;
    return refuse(node, "it brings the reward " + role.substr(7),
                  "take that out with `troupe detach reward --name " + role.substr(7) +
                      "`, and its process ends");
  }
  return {};
}

void Drains::begin(const std::string& node, const Join& process) {
  forget(node);
  if (drains_.size() >= limits::kDrains_max) drains_.pop_front();
  drains_.push_back({node, process.host_id, process.pid});
}

const Drains::Drain* Drains::find(const std::string& node) const {
  const auto found = std::find_if(drains_.begin(), drains_.end(),
                                  [&](const Drain& drain) { return drain.node == node; });
  return found == drains_.end() ? nullptr : &*found;
}

bool Drains::is(const std::string& node, State state) const {
  const Drain* const drain = find(node);
  return drain != nullptr && drain->state == state;
}

void Drains::set(const std::string& node, State state) {
  for (Drain& drain : drains_)
    if (drain.node == node) drain.state = state;
}

void Drains::dismissed(const std::string& node) {
  set(node, State::kDismissed);
}

void Drains::done(const std::string& node) {
  set(node, State::kGone);
}

bool Drains::is_back(const Join& join) const {
  const Drain* const drain = find(join.name);
  return drain != nullptr && drain->host_id == join.host_id && drain->pid == join.pid;
}

void Drains::forget(const std::string& node) {
  std::erase_if(drains_, [&](const Drain& drain) { return drain.node == node; });
}

}  // namespace troupe::actors::company
