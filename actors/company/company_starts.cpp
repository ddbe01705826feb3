// How the company starts roles, and what it does with those that cannot be used.
#include "actors/company/company.hpp"
#include "actors/company/start_errors.hpp"
#include "actors/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "runtime/cluster/limits.hpp"

namespace troupe::actors {

using core::ErrorCode;

void Company::start_due_roles() {
  for (PlacedRole& placed : placement_.start_due(context_.timers->now())) {
    note_size(placed);
    admission_.expect(placed.node, placed.name, placed.epoch);
    const std::string what = "start " + placed.name;
    context_.scope->spawn(what, start_role(std::move(placed)));
  }
}

async::task<void> Company::start_role(PlacedRole placed) {
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
  if (!processes_.has(placed.node) && hooks_.contents) {
    auto contents = co_await hooks_.contents();
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
  } else if (!co_await arrived(placed.name, placed.epoch)) {
    lose_role(placed.name, placed.epoch,
              {ErrorCode::kPeerLost, placed.name + " was started and did not introduce itself"});
  } else if (!classes_.check(placed.name)) {
    auto refused = refuse_class(std::move(placed));
    co_await std::move(refused);
  } else if (placement_.up(placed.name, placed.epoch)) {
    hooks_.role_up(placed.name);
    changed_.notify_all();
  }
}

// Does not ask a node again for a kind of role that it cannot play; the run waits for another node.
// It ends the run only when a node of this host cannot play a role that nobody stands in for: any
// other node of this host would fail the same way.
void Company::not_started(const PlacedRole& placed, const core::Error& error) {
  const PlacedRole* const now = placement_.find(placed.name);
  if (now == nullptr || now->epoch != placed.epoch) return;  // the role was lost meanwhile
  if (now->state != RoleState::kStarting) return;            // it was taken down meanwhile
  const bool for_good = is_final(error.code);
  const bool guest = !processes_.has(placed.node);
  const bool stand_in = guest || (placed.kind == "generator" && placement_.any_up(placed.kind));
  if (for_good && !stand_in) fail_run(error.within(placed.node));
  const bool strikes = for_good ? stand_in : guest && !placed.guest;
  if (!was_answered(error.code) || !strikes) return lose_role(placed.name, placed.epoch, error);
  hooks_.note(placed.node + " cannot play " + placed.name + ": " + error.message);
  const core::TimePoint rested = context_.timers->now() + limits::kRestartRest;
  placement_.strike(placed.node, placed.kind, for_good ? core::TimePoint::max() : rested);
  placement_.lost(placed.name, placed.epoch, error.within(placed.node), context_.timers->now());
  if (placed.guest) {
    placement_.drop(placed.name);
  } else if (!placement_.has_candidate(placed.kind)) {
    hooks_.note("no node is left that can play " + placed.name +
                "; the run waits for one with --roles " + placed.kind);
  }
  changed_.notify_all();
}

async::task<bool> Company::arrived(std::string role, std::uint64_t epoch) {
  const auto deadline = async::Deadline::after(*context_.timers, cluster::limits::kLinkAnswer_max);
  while (introduced(role) < epoch) {
    if (!co_await changed_.wait(deadline)) co_return introduced(role) >= epoch;
  }
  co_return true;
}

// The roles whose class was found out before the policy's are looked at once that is there.
void Company::note_class(const wire::Hello& hello) {
  const PlacedRole* const here = placement_.find(hello.name);
  if (here == nullptr) return;
  const Member* const member = membership_.find(here->node);
  const std::string host = member == nullptr ? "" : " on " + member->join.host;
  classes_.note(hello.name, hello.arithmetic, here->node + host);
  for (const std::string& role : classes_.strangers()) {
    const PlacedRole* const placed = placement_.find(role);
    if (placed != nullptr && placed->state == RoleState::kUp) {
      restart(role, placed->epoch, classes_.check(role).error());
    }
  }
}

// A role of another class than the policy's is not used, and its node is not asked for one again.
async::task<void> Company::refuse_class(PlacedRole placed) {
  not_started(placed, classes_.check(placed.name).error());
  const RoleContext context = context_.with_deadline(cluster::limits::kShutdownDeadline);
  StopRole stop{placed.name, placed.epoch};
  std::string node = placed.node;
  auto stopped = co_await ask(context, std::move(node), std::move(stop));
  static_cast<void>(stopped);  // if it does not stop, the next start's epoch fences it
}

}  // namespace troupe::actors
