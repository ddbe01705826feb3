#include "actors/company/role_starter.hpp"

#include "actors/company/limits.hpp"
#include "actors/company/membership.hpp"
#include "actors/company/start_errors.hpp"
#include "actors/protocol/ask.hpp"
#include "runtime/cluster/limits.hpp"

#include <cstring>

namespace troupe::actors::company {

void RoleStarter::start_due() {
  for (PlacedRole& placed : roles_.placement().start_due(context_.timers->now())) {
    roles_.note_size(placed);
    admission_.expect(placed.node, placed.name, placed.epoch);
    const std::string what = "start " + placed.name;
    context_.scope->spawn(what, start(std::move(placed)));
  }
}

std::vector<std::string> RoleStarter::take_in(const Join& join) {
  if (offers(join, "attach")) admission_.allow_kind(join.name, "reward");
  if (offers(join, "serve")) admission_.allow_kind(join.name, "serve");
  if (offers(join, "learn")) admission_.allow_kind(join.name, "environment");
  RolePlacement& placement = roles_.placement();
  if (offers(join, "generator") && !processes_.has(join.name))
    placement.want("generator", adoption_.name_generator(join, placement), join.name, true);
  if (offers(join, kAttachedEnvironment)) {
    const std::string role = "environment/" + join.name.substr(std::strlen("node/"));
    placement.want(kAttachedEnvironment, role, join.name, true);
  }
  std::vector<std::string> names;
  if (roles_.resting()) return names;
  for (const HostedRole& kept : adoption_.keep(join, placement)) {
    admission_.expect(join.name, kept.name, kept.epoch);
    context_.scope->spawn("take over " + kept.name, see_up(*placement.find(kept.name), true));
    names.push_back(kept.name);
  }
  return names;
}

void RoleStarter::end_leftovers() {
  const core::Error cause{ErrorCode::kInternal, "its weights are those of a policy that is gone"};
  for (const HostedRole& left : adoption_.leftovers(roles_.placement())) {
    if (!roles_.placement().stop(left.name, left.epoch, cause)) continue;
    context_.scope->spawn("restart " + left.name, roles_.take_down(left.name, left.epoch, cause));
  }
}

async::task<void> RoleStarter::start(PlacedRole placed) {
  Spawn spawn;
  spawn.kind = placed.kind;
  spawn.name = placed.name;
  spawn.run_id = options_.run_id;
  spawn.epoch = placed.epoch;
  if (const auto* threads = core::find_value(options_.threads, placed.kind)) {
    spawn.threads = *threads;
  }
  spawn.config = options_.config;
  spawn.settings = options_.settings;
  spawn.rank = placed.rank;
  spawn.ranks = placed.ranks;
  if (!processes_.has(placed.node)) {
    auto contents = co_await port_.contents();
    for (auto& setting : contents)
      spawn.settings.push_back(std::move(setting));
  }
  const RoleContext context = context_.with_deadline(limits::kSpawnDeadline);
  auto spawned = co_await ask(context, placed.node, std::move(spawn));
  if (!spawned) {
    const core::Error error = without_name(spawned.error(), placed.node);
    // The end of another rank fails this start, too, and the company may hear of it later.
    if (!placed.gang.empty() && !was_answered(error.code)) {
      co_await async::sleep_for(*context_.timers, limits::kFrozenAfter);
    }
    not_started(placed, error);
    co_return;
  }
  auto seeing = see_up(std::move(placed), false);
  co_await std::move(seeing);
}

async::task<void> RoleStarter::see_up(PlacedRole placed, bool kept) {
  auto waited = arrivals_.wait(placed.name, placed.epoch);
  const bool there = co_await std::move(waited);
  if (!there) {
    const std::string cause =
        placed.name + (kept ? " was kept" : " was started") + " and did not introduce itself";
    roles_.lose(placed.name, placed.epoch, {ErrorCode::kPeerLost, cause});
  } else if (!classes_.check(placed.name)) {
    auto refused = refuse_class(std::move(placed));
    co_await std::move(refused);
  } else if (roles_.placement().up(placed.name, placed.epoch)) {
    if (kept) port_.note(placed.name + " keeps running");
    port_.role_up(placed.name);
    changed_.notify_all();
  }
}

// Does not ask a node again for a kind of role that it cannot run; the run waits for another node.
// It ends the run only when a node of this host cannot run a role that has no substitute: any
// other node of this host would fail the same way.
void RoleStarter::not_started(const PlacedRole& placed, const core::Error& error) {
  RolePlacement& placement = roles_.placement();
  const PlacedRole* const now = placement.find(placed.name);
  if (now == nullptr || now->epoch != placed.epoch) return;  // the role was lost meanwhile
  if (now->state != RoleState::kStarting) return;            // it was taken down meanwhile
  const bool for_good = is_final(error.code);
  const bool guest = !processes_.has(placed.node);
  const bool stand_in = guest || (placed.kind == "generator" && placement.any_up(placed.kind));
  if (for_good && !stand_in) roles_.fail(error.within(placed.node));
  const bool strikes = for_good ? stand_in : guest && !placed.guest;
  if (!was_answered(error.code) || !strikes) return roles_.lose(placed.name, placed.epoch, error);
  port_.note(placed.node + " cannot run " + placed.name + ": " + error.message);
  const core::TimePoint rested = context_.timers->now() + limits::kRestartRest;
  placement.strike(placed.node, placed.kind, for_good ? core::TimePoint::max() : rested);
  placement.lost(placed.name, placed.epoch, error.within(placed.node), context_.timers->now());
  if (placed.guest) {
    placement.drop(placed.name);
  } else if (!placement.has_candidate(placed.kind)) {
    port_.note("no node is left that can run " + placed.name +
               "; the run waits for one with --roles " + placed.kind);
  }
  changed_.notify_all();
}

void RoleStarter::note_class(const wire::Hello& hello, const std::string& where) {
  classes_.note(hello.name, hello.arithmetic, where);
  for (const std::string& role : classes_.strangers()) {
    const PlacedRole* const placed = roles_.placement().find(role);
    if (placed != nullptr && placed->state == RoleState::kUp)
      roles_.restart(role, placed->epoch, classes_.check(role).error());
  }
}

// A role of another class than the policy's is not used, and its node is not asked for one again.
async::task<void> RoleStarter::refuse_class(PlacedRole placed) {
  not_started(placed, classes_.check(placed.name).error());
  const RoleContext context = context_.with_deadline(cluster::limits::kShutdownDeadline);
  StopRole stop{placed.name, placed.epoch};
  std::string node = placed.node;
  auto stopped = co_await ask(context, std::move(node), std::move(stop));
  if (!stopped) port_.fence(placed.name, placed.epoch, stopped.error());
}

}  // namespace troupe::actors::company
