// The roles a run wants, who plays them, and when a role that was lost is started again. Pure: told
// the time, never asks for it. Owned by the company, used on its strand.
//
//   wanted -> (a node offers its kind) -> starting -> up -> lost -> (back-off) -> wanted
//                                                        -> stopping -> lost
//
// A role that is lost kRestarts_max times within kRestartWindow is worn out. Where nobody else can
// play it or stand in for it the run ends with its cause; else it rests for kRestartRest. A node
// that cannot play a kind is struck off for it while that process of the node is in.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/error.hpp"
#include "runtime/core/find_value.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

enum class RoleState { kWanted, kStarting, kUp, kStopping };

struct PlacedRole {
  std::string kind;    // "generator"
  std::string name;    // "generator/0"
  std::string bound;   // the one node that may play it; "" any that offers the kind
  bool guest = false;  // bound to a guest, and gone with it
  RoleState state = RoleState::kWanted;
  std::string node{};  // who plays it or is starting it
  std::uint64_t epoch = 0;
  core::TimePoint not_before{};  // back-off
  std::deque<core::TimePoint> losses{};
  std::string last_cause{};
};

class RolePlacement {
 public:
  void want(std::string kind, std::string name, std::string bound, bool guest = false);
  // No longer wanted.
  void drop(const std::string& name) { roles_.erase(name); }

  // Nodes that are in, with what they offer.
  void node_in(const std::string& node, std::vector<std::string> kinds);
  // The roles it played are wanted again; gives their names.
  std::vector<std::string> node_out(const std::string& node,
                                    const core::Error& cause,
                                    core::TimePoint now);

  // That node has shown that it cannot play this kind: it is not asked again until then, or until
  // it comes in anew.
  void strike(const std::string& node, const std::string& kind, core::TimePoint until) {
    strikes_[{node, kind}] = until;
  }
  // True when a node that is in may be asked to play it, now or later.
  bool has_candidate(const std::string& kind) const;

  // Roles that can be started now: each is `starting` on its node from then on, with a new epoch.
  std::vector<PlacedRole> start_due(core::TimePoint now);
  // Start succeeded; false when it was lost meanwhile (epoch differs).
  bool up(const std::string& name, std::uint64_t epoch);
  // One that is up and is to be taken down because of the cause: nobody's until it is `lost`. False
  // when it is not up, or in another epoch.
  bool stop(const std::string& name, std::uint64_t epoch, const core::Error& cause);
  // A start failed or a role that was up went away; false when this epoch was over before.
  bool lost(const std::string& name,
            std::uint64_t epoch,
            const core::Error& cause,
            core::TimePoint now);

  // Taken down on purpose: wanted again, and no loss.
  void retire(const std::string& name);

  // A role that is worn out and that nobody stands in for, with its last cause: one of this
  // host's, and of the generators only when all that there are wore out.
  std::optional<PlacedRole> hopeless(core::TimePoint now) const;

  const PlacedRole* find(const std::string& name) const { return core::find_value(roles_, name); }
  const std::map<std::string, PlacedRole>& roles() const noexcept { return roles_; }
  // True when all roles of these kinds are up (and there is one).
  bool all_up(const std::string& kind) const;
  // True when a role of this kind is up.
  bool any_up(const std::string& kind) const;

 private:
  PlacedRole* of_epoch(const std::string& name, std::uint64_t epoch);  // null: not in that one
  std::string place_for(const PlacedRole& placed, core::TimePoint now) const;

  std::map<std::string, PlacedRole> roles_;
  std::map<std::string, std::vector<std::string>> nodes_;  // offered kinds by node
  // By node and kind, until when.
  std::map<std::pair<std::string, std::string>, core::TimePoint> strikes_;
};

}  // namespace troupe::actors
