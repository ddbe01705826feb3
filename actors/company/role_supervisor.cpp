#include "actors/company/role_supervisor.hpp"

#include "actors/company/limits.hpp"
#include "actors/company/lost_nodes.hpp"
#include "actors/company/start_errors.hpp"
#include "actors/controller/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "runtime/cluster/limits.hpp"

#include <algorithm>

namespace troupe::actors::company {

RoleSupervisor::RoleSupervisor(const RoleContext& context,
                               CompanyPort& port,
                               const CompanyOptions& options,
                               LocalProcesses& processes,
                               Arrivals& arrivals,
                               async::Notifier& changed)
    : context_(context),
      port_(port),
      processes_(processes),
      arrivals_(arrivals),
      changed_(changed),
      placement_(options.generation) {
  for (const WantedRole& role : options.roles) {
    if (role.ranked) {
      placement_.want_rank(role.kind, role.name, role.bound);
    } else {
      placement_.want(role.kind, role.name, role.bound);
    }
  }
}

void RoleSupervisor::lose(const std::string& role, std::uint64_t epoch, const core::Error& cause) {
  const PlacedRole* const placed = placement_.find(role);
  const bool was_up = placed != nullptr && placed->state == RoleState::kUp;
  const bool was_told = placed != nullptr && placed->state == RoleState::kStopping;
  if (!placement_.lost(role, epoch, cause, context_.timers->now())) return;
  if (may_start() && !was_told) port_.note(lost_text(role, cause));
  if (was_up) port_.role_lost(role, cause);
  changed_.notify_all();
}

void RoleSupervisor::gone(const std::string& role, std::uint64_t epoch, const core::Error& cause) {
  if (placement_.find(role) != nullptr) return lose(role, epoch, cause);
  arrivals_.forget(role);
  port_.role_lost(role, cause);
}

void RoleSupervisor::release(const std::string& role,
                             std::uint64_t epoch,
                             const core::Error& cause) {
  port_.fence(role, epoch, cause);
  if (arrivals_.epoch_of(role) <= epoch) gone(role, epoch, cause);
}

void RoleSupervisor::drop_bound(const std::string& node) {
  const auto roles = placement_.roles();
  for (const auto& [name, placed] : roles) {
    if (placed.bound != node) continue;
    placement_.drop(name);
    arrivals_.forget(name);
  }
}

async::task<void> RoleSupervisor::stop(std::string role, std::uint64_t epoch, core::Error cause) {
  // Without an answer the role may have ended: leaves the transport time to report why.
  if (!was_answered(cause.code)) {
    co_await async::sleep_for(*context_.timers, limits::kSuspectAfter);
  }
  if (placement_.stop(role, epoch, cause)) {
    co_await take_down(std::move(role), epoch, std::move(cause));
  }
}

async::task<void> RoleSupervisor::take_down(std::string role,
                                            std::uint64_t epoch,
                                            core::Error cause) {
  const bool moves = placement_.find(role)->moves;
  port_.note(role + (moves ? " is taken down: " : " is started again: ") + cause.message);
  port_.role_lost(role, cause);
  const RoleContext context = context_.with_deadline(cluster::limits::kShutdownDeadline);
  StopRole request{role, epoch};
  std::string node = placement_.find(role)->node;
  auto stopped = co_await ask(context, std::move(node), std::move(request));
  if (!stopped) {
    end_rank(role, epoch);
    port_.fence(role, epoch, cause);  // the name is free, also for a start on another node
  }
  lose(role, epoch, cause);
}

// A rank that did not stop may be stuck with its device: its process is ended, if it is one of this
// host's.
void RoleSupervisor::end_rank(const std::string& role, std::uint64_t epoch) {
  const PlacedRole* const placed = placement_.find(role);
  const bool stuck = placed != nullptr && placed->epoch == epoch && !placed->gang.empty() &&
                     placed->state == RoleState::kStopping && processes_.has(placed->node);
  if (!stuck) return;
  port_.note(role + " does not stop; its process is ended");
  processes_.kill(placed->node);
}

void RoleSupervisor::tend_gangs() {
  auto all = placement_.break_up(context_.timers->now());
  if (!all.empty()) changed_.notify_all();  // ranks that wait for a meeting
  for (RolePlacement::Broken& broken : all) {
    const std::string what = "take down " + broken.rank.name;
    context_.scope->spawn(what,
                          take_down(broken.rank.name, broken.rank.epoch, std::move(broken.cause)));
  }
  look_for_room();
}

void RoleSupervisor::look_for_room() {
  const std::string gang = placement_.roomy(context_.timers->now());
  const std::string text = gang.empty()
                               ? ""
                               : gang + " has a node again for each of its " +
                                     std::to_string(placement_.ranks_wanted(gang)) + " ranks";
  if (text == room_) return;
  room_ = text;
  if (!text.empty()) port_.note(text + "; it starts with all at the next checkpoint");
  port_.regroup(text);
}

void RoleSupervisor::note_size(const PlacedRole& placed) const {
  if (placed.gang.empty() || placed.rank != 0) return;
  const std::uint32_t wanted = placement_.ranks_wanted(placed.gang);
  if (placed.ranks == wanted) return;
  port_.note(placed.gang + " continues with " + std::to_string(placed.ranks) + " of its " +
             std::to_string(wanted) +
             " ranks: there is no node for the others, which join at a checkpoint when "
             "there is one");
}

async::task<core::Result<GangMet>> RoleSupervisor::on(MeetGang request) {
  const PlacedRole* const asked = placement_.find(request.role);
  if (asked == nullptr || asked->gang.empty()) {
    co_return core::fail(ErrorCode::kInvalidArgument, request.role + " is not a rank of a gang");
  }
  const auto is_over = [&] {
    const PlacedRole* const rank = placement_.find(request.role);
    return rank->epoch != request.epoch ||
           (rank->state != RoleState::kStarting && rank->state != RoleState::kUp);
  };
  if (!is_over()) {
    TROUPE_CO_TRY(meetings_.come(*asked, request));
    const std::string& socket = request.address.socket;
    if (!socket.empty() && processes_.has(asked->node)) port_.rank_listens(*asked, socket);
    changed_.notify_all();
  }
  while (!is_over() && may_start()) {
    if (auto met = meetings_.met(*placement_.find(request.role))) co_return std::move(*met);
    co_await changed_.wait(async::Deadline::none());
  }
  co_return core::fail(ErrorCode::kPeerLost,
                       "the start of " + request.role + " whose gang was to meet is over");
}

// The kernel tells why a process ended a moment after its roles are lost.
void RoleSupervisor::look_for_worn() {
  const core::TimePoint now = context_.timers->now();
  const auto placed = placement_.hopeless(now);
  if (!placed || now - placed->losses.back() < 2 * controller::limits::kLookEvery) return;
  fail(worn_out(placed->last_code, ErrorCode::kPeerLost,
                placed->name + " was lost " + std::to_string(limits::kRestarts_max) +
                    " times within " + std::to_string(limits::kRestartWindow.count() / 1000) +
                    " s; the last time: " + placed->last_cause));
}

void RoleSupervisor::fail(const core::Error& error) {
  if (std::exchange(failed_, true)) return;
  port_.hopeless(error);
  changed_.notify_all();
}

async::task<core::Result<void>> RoleSupervisor::await_up(std::vector<std::string> kinds,
                                                         async::Deadline deadline) const {
  const auto why_not = [this](const std::string& kind) -> std::string {
    for (const auto& [name, placed] : placement_.roles()) {
      const bool failed = placed.kind == kind && placed.state != RoleState::kUp;
      if (failed && !placed.last_cause.empty()) return " (" + placed.last_cause + ")";
    }
    return "";
  };
  for (;;) {
    const bool all = std::all_of(kinds.begin(), kinds.end(),
                                 [&](const std::string& kind) { return placement_.all_up(kind); });
    if (all) co_return core::Result<void>();
    if (failed_) co_return core::fail(ErrorCode::kClosed, "the run has ended");
    if (!co_await changed_.wait(deadline)) {
      std::string missing;
      for (const std::string& kind : kinds) {
        if (!placement_.all_up(kind))
          missing += (missing.empty() ? "" : ", ") + kind + why_not(kind);
      }
      co_return core::fail(ErrorCode::kDeadline, "these roles did not come up: " + missing);
    }
  }
}

async::task<void> RoleSupervisor::end_run() {
  resting_ = true;
  changed_.notify_all();  // ranks that wait for a meeting
  const core::Error over{ErrorCode::kClosed, "the run has ended"};
  const RoleContext context = context_.with_deadline(cluster::limits::kShutdownDeadline);
  for (const PlacedRole& placed : placement_.stop_all()) {
    if (placed.state == RoleState::kUp) port_.role_lost(placed.name, over);
    StopRole request{placed.name, placed.epoch};
    auto stopped = co_await ask(context, placed.node, std::move(request));
    if (!stopped) port_.note(placed.name + " could not be stopped: " + stopped.error().message);
    placement_.retire(placed.name);
    port_.fence(placed.name, placed.epoch, over);
    changed_.notify_all();
  }
}

}  // namespace troupe::actors::company
