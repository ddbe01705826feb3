// Records which roles a run wants and which node runs each; decides when a lost role is started
// again. Pure: the caller passes the time in. Owned by the company, used on its strand.
//
//   wanted -> (a node offers its kind) -> starting -> up -> lost -> (back-off) -> wanted
//          -> (a node has it from an earlier head) ---^  -> stopping -> lost
//
// A role that is taken down because it is sick is started again after kRestartAfter, and then at
// most once every kSickPause_min, doubling to kSickPause_max; that does not count as a loss. Nor
// does that it is moved from a drained node, which gets no role any more until it joins again, or
// that it ends with a session of the run, because another role was lost. A role that is lost
// kRestarts_max times within kRestartWindow is worn out. If no other node may run it and no other
// role stands in for it, the run ends with the last cause; otherwise the role rests for
// kRestartRest. A node that cannot run a kind of role is not asked for it again for some time, at
// the longest until it joins again.
//
// The ranks of a gang are started, lost and numbered as one (role_gangs.hpp).
#pragma once

#include "actors/company/role_gangs.hpp"
#include "runtime/core/find_value.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::company {

class RolePlacement {
 public:
  // `generation`: of the company; the epochs of roles that it starts have it in their upper half.
  explicit RolePlacement(std::uint64_t generation = 0)
      : generation_(generation), gangs_(generation) {}

  void want(std::string kind, std::string name, std::string bound, bool guest = false);
  // The next rank of the gang of this kind.
  void want_rank(const std::string& kind, std::string name, std::string bound);
  // No longer wanted.
  void drop(const std::string& name) { roles_.erase(name); }

  // The node has joined and offers to run these kinds of roles.
  void node_in(const std::string& node, std::vector<std::string> kinds) {
    offers_.add(node, std::move(kinds));
  }
  // The node left. The roles it ran are wanted again; returns their names.
  std::vector<std::string> node_out(const std::string& node,
                                    const core::Error& cause,
                                    core::TimePoint now);
  // Why the process of that node ended, which is known only after its roles were lost with it.
  void explain(const std::string& node, const core::Error& cause);

  // That node cannot run this kind: do not ask it again before `until`, or before it joins again.
  void strike(const std::string& node, const std::string& kind, core::TimePoint until) {
    offers_.strike(node, kind, until);
  }
  // True when a node other than `but_for` that has joined may be asked to run this kind, now or
  // later.
  bool has_candidate(const std::string& kind, const std::string& but_for = "") const {
    return offers_.has_candidate(kind, but_for);
  }

  // The node gets no role any more, until it joins again.
  void drain(const std::string& node) { offers_.drain(node); }
  bool is_drained(const std::string& node) const { return offers_.is_drained(node); }

  // The roles that can be started now. Each becomes `starting` on its node, with a new epoch.
  std::vector<PlacedRole> start_due(core::TimePoint now);
  // A node brings this role, which an earlier head started. It becomes `starting` there. False when
  // the role is not wanted there, or its epoch is not of an earlier generation.
  bool adopt(const std::string& name, const std::string& node, std::uint64_t epoch);
  // The start succeeded. False when the role was lost meanwhile (its epoch differs).
  bool up(const std::string& name, std::uint64_t epoch);
  // A role that is up is being taken down for this cause; it is not started again before `lost` is
  // called. False when it is not up, or in another epoch.
  bool stop(const std::string& name, std::uint64_t epoch, const core::Error& cause);
  // Like `stop`, for a role that starts again elsewhere as soon as it is lost.
  bool move(const std::string& name, std::uint64_t epoch, const core::Error& cause);
  // The run has its roles stopped. Those that are starting or up are being taken down from now on
  // and start again as soon as they are lost. Returns the roles that are not down, as they were.
  std::vector<PlacedRole> stop_all();
  // A start failed, or a role that was up went away. False when that epoch had already ended.
  bool lost(const std::string& name,
            std::uint64_t epoch,
            const core::Error& cause,
            core::TimePoint now);

  using Broken = RoleGangs::Broken;
  // As RoleGangs does.
  std::vector<Broken> break_up(core::TimePoint now);
  std::string roomy(core::TimePoint now) { return gangs_.roomy(roles_, offers_, now); }
  std::uint32_t ranks_wanted(const std::string& gang) const {
    return static_cast<std::uint32_t>(gangs_.wanted(gang));
  }

  // The role was not to blame for its failures and losses: they are forgotten, and it may start.
  void clear(const std::string& name);

  // The role was taken down on purpose: it is wanted again, and this does not count as a loss.
  void retire(const std::string& name);

  // A worn-out role of this host without a substitute, with its last cause. A generator counts
  // only when all generators are worn out.
  std::optional<PlacedRole> hopeless(core::TimePoint now) const;

  const PlacedRole* find(const std::string& name) const { return core::find_value(roles_, name); }
  const PlacedRoles& roles() const noexcept { return roles_; }
  // What is broken, or "": a role that is not wanted is at a node that is in and may run it, and
  // no two ranks of a gang share one.
  std::string check_invariants() const;

  // True when all roles of this kind are up, and there is at least one. Of a gang the ranks of its
  // present start count.
  bool all_up(const std::string& kind) const;
  // True when a role of this kind is up.
  bool any_up(const std::string& kind) const;

 private:
  PlacedRole* of_epoch(const std::string& name, std::uint64_t epoch);  // null: its epoch differs

  std::uint64_t generation_;
  PlacedRoles roles_;
  NodeOffers offers_;
  RoleGangs gangs_;
};

}  // namespace troupe::actors::company
