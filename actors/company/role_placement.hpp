// Records which roles a run wants and which node plays each; decides when a lost role is started
// again. Pure: the caller passes the time in. Owned by the company, used on its strand.
//
//   wanted -> (a node offers its kind) -> starting -> up -> lost -> (back-off) -> wanted
//          -> (a node has it from an earlier head) ---^  -> stopping -> lost
//
// A role that is taken down because it is sick is started again after kRestartAfter, and then at
// most once every kSickPause_min, doubling to kSickPause_max; that does not count as a loss. Nor
// does that it is moved from a drained node, which gets no role any more until it joins again, or
// that it ends with a session of the run, because another role was lost. A role that is lost
// kRestarts_max times within kRestartWindow is worn out. If no other node may play it and no other
// role stands in for it, the run ends with the last cause; otherwise the role rests for
// kRestartRest. A node that cannot play a kind of role is not asked for it again for some time, at
// the longest until it joins again.
//
// The ranks of a gang (ADR 0026) are roles of one kind that are started, lost and numbered as one.
// They start together, each on a node of its own and all with one epoch, once there is a place for
// each. When one is lost, stopped or moved, `break_up` says which others must be taken down. A gang
// that was whole once starts with fewer ranks, the lowest numbers, when for kGangWait there was no
// place for a rank that any node may play. `roomy` names one that has had a node for each of the
// others for kGangRoom_min, or for longer when it falls short again and again.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/error.hpp"
#include "runtime/core/find_value.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::actors {

enum class RoleState { kWanted, kStarting, kUp, kStopping };

struct PlacedRole {
  std::string kind;    // "generator"
  std::string name;    // "generator/0"
  std::string bound;   // the one node that may play it; "": any that offers the kind
  bool guest = false;  // bound to a guest, and dropped when the guest leaves
  RoleState state = RoleState::kWanted;
  std::string node{};  // the node that plays it or is starting it
  std::uint64_t epoch = 0;
  core::TimePoint not_before{};  // earliest next start (back-off)
  std::deque<core::TimePoint> losses{};
  core::TimePoint last_sick{};  // when it was last taken down as sick, or starts again after that
  core::Duration sick_pause{};  // the least time from then to its next start when sick again
  bool sick = false;            // it was last taken down as sick, and has not been up since
  bool moves = false;           // it is being taken down, and not for a fault of its own
  std::string last_cause{};
  std::string gang{};       // the kind, for a rank of a gang; "" for others
  std::uint32_t rank = 0;   // its number
  std::uint32_t ranks = 1;  // of the gang's present start, or last
};

class RolePlacement {
 public:
  // `generation`: of the company; the epochs of roles that it starts have it in their upper half.
  explicit RolePlacement(std::uint64_t generation = 0) : generation_(generation) {}

  void want(std::string kind, std::string name, std::string bound, bool guest = false);
  // The next rank of the gang of this kind.
  void want_rank(const std::string& kind, std::string name, std::string bound);
  // No longer wanted.
  void drop(const std::string& name) { roles_.erase(name); }

  // The node has joined and offers to play these kinds of roles.
  void node_in(const std::string& node, std::vector<std::string> kinds);
  // The node left. The roles it played are wanted again; returns their names.
  std::vector<std::string> node_out(const std::string& node,
                                    const core::Error& cause,
                                    core::TimePoint now);

  // That node cannot play this kind: do not ask it again before `until`, or before it joins again.
  void strike(const std::string& node, const std::string& kind, core::TimePoint until) {
    strikes_[{node, kind}] = until;
  }
  // True when a node other than `but_for` that has joined may be asked to play this kind, now or
  // later.
  bool has_candidate(const std::string& kind, const std::string& but_for = "") const;

  // The node gets no role any more, until it joins again.
  void drain(const std::string& node) { drained_.insert(node); }
  bool is_drained(const std::string& node) const { return drained_.contains(node); }

  // The roles that can be started now. Each becomes `starting` on its node, with a new epoch.
  std::vector<PlacedRole> start_due(core::TimePoint now);
  // A node brings this role, which an earlier head started. It becomes `starting` there. False when
  // the role is not wanted there, or its epoch is not of an earlier generation.
  bool adopt(const std::string& name, const std::string& node, std::uint64_t epoch);
  // The start succeeded. False when the role was lost meanwhile (its epoch differs).
  bool up(const std::string& name, std::uint64_t epoch);
  // A role that is up is being taken down for this cause; nobody starts it again before `lost` is
  // called. False when it is not up, or in another epoch.
  bool stop(const std::string& name, std::uint64_t epoch, const core::Error& cause);
  // The same for a role that starts again elsewhere as soon as it is lost.
  bool move(const std::string& name, std::uint64_t epoch, const core::Error& cause);
  // The run has its roles stopped. Those that are starting or up are being taken down from now on
  // and start again as soon as they are lost. Returns the roles that are not down, as they were.
  std::vector<PlacedRole> stop_all();
  // A start failed, or a role that was up went away. False when that epoch had already ended.
  bool lost(const std::string& name,
            std::uint64_t epoch,
            const core::Error& cause,
            core::TimePoint now);

  struct Broken {
    PlacedRole rank;
    core::Error cause;
  };
  // The ranks that are starting or up and whose gang is not whole any more. They are being stopped
  // from now on, and start again with the gang as soon as all of them are lost.
  std::vector<Broken> break_up(core::TimePoint now);

  // A gang that works with fewer than its ranks and may start with all; "" when there is none.
  std::string roomy(core::TimePoint now);

  // The role was not to blame for its failures and losses: they are forgotten, and it may start.
  void clear(const std::string& name);

  // The role was taken down on purpose: it is wanted again, and this does not count as a loss.
  void retire(const std::string& name);

  // A worn-out role of this host that nobody stands in for, with its last cause. A generator counts
  // only when all generators are worn out.
  std::optional<PlacedRole> hopeless(core::TimePoint now) const;

  std::uint32_t ranks_wanted(const std::string& gang) const {
    return static_cast<std::uint32_t>(gangs_.at(gang).names.size());
  }
  const PlacedRole* find(const std::string& name) const { return core::find_value(roles_, name); }
  const std::map<std::string, PlacedRole>& roles() const noexcept { return roles_; }
  // True when all roles of this kind are up, and there is at least one. Of a gang the ranks of its
  // present start count.
  bool all_up(const std::string& kind) const;
  // True when a role of this kind is up.
  bool any_up(const std::string& kind) const;

 private:
  struct Gang {
    std::vector<std::string> names;                // by rank
    std::uint32_t size = 0;                        // ranks of the present start, or last
    bool whole = false;                            // it had all of its ranks once
    std::optional<core::TimePoint> short_since{};  // since when there is no place for some
    std::optional<core::TimePoint> torn_since{};  // since when a rank of an earlier head is missing
    std::optional<core::TimePoint> roomy_since{};  // since when there is a place for all others
    core::Duration room{};                         // how long that must last
    core::TimePoint fell_short{};                  // when it last lost ranks without a place
  };
  using Nodes = std::vector<std::string>;
  const std::uint64_t generation_;
  PlacedRole* of_epoch(const std::string& name, std::uint64_t epoch);  // null: its epoch differs
  std::string place_for(const PlacedRole& placed,
                        core::TimePoint now,
                        const Nodes& but_for = {}) const;
  void start_gangs(core::TimePoint now, std::vector<PlacedRole>& due);
  bool may_start(const Gang& gang, core::TimePoint now) const;
  Nodes places_of(const Gang& gang, core::TimePoint now) const;
  bool are_enough(Gang& gang, const Nodes& nodes, core::TimePoint now) const;
  static void fall_short(Gang& gang, core::TimePoint now);
  bool has_room(const Gang& gang, core::TimePoint now) const;
  bool gang_takes(const PlacedRole& rank, std::uint64_t epoch) const;
  std::optional<core::Error> why_broken(Gang& gang, core::TimePoint now) const;

  std::map<std::string, PlacedRole> roles_;
  std::map<std::string, Gang> gangs_;                      // by kind
  std::map<std::string, std::vector<std::string>> nodes_;  // offered kinds by node
  // Until when a node is not asked for a kind of role; by node and kind.
  std::map<std::pair<std::string, std::string>, core::TimePoint> strikes_;
  std::set<std::string> drained_;  // nodes
};

}  // namespace troupe::actors
