#include "actors/company/company.hpp"

#include "actors/company/start_errors.hpp"
#include "actors/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/run_words.hpp"
#include "runtime/cluster/limits.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::actors {

using core::ErrorCode;

namespace {

// "generator/0 is lost: why"; the head is not doubled when the cause already has it.
std::string lost_text(const std::string& name, const core::Error& cause) {
  const std::string head = name + " is lost: ";
  return cause.message.starts_with(head) ? cause.message : head + cause.message;
}

}  // namespace

Company::Company(RoleContext context,
                 CompanyOptions options,
                 Admission& admission,
                 NodeLauncher& launcher,
                 CompanyHooks hooks)
    : context_(std::move(context)),
      options_(std::move(options)),
      admission_(admission),
      hooks_(std::move(hooks)),
      membership_(options_.arithmetic, options_.build),
      placement_(options_.generation),
      adoption_(options_.run_id, options_.generation, options_.config),
      processes_(options_.local_nodes, launcher, admission),
      changed_(*context_.timers) {
  for (const WantedRole& role : options_.roles) {
    if (role.ranked) {
      placement_.want_rank(role.kind, role.name, role.bound);
    } else {
      placement_.want(role.kind, role.name, role.bound);
    }
  }
}

async::task<core::Result<void>> Company::attend() {
  for (;;) {
    tend_processes();
    look_at_silence();
    if (!resting_ && !failed_) {
      mend_gangs();
      look_for_room();
      start_due_roles();
    }
    if (const auto placed = placement_.hopeless(context_.timers->now())) {
      fail_run({ErrorCode::kPeerLost, placed->name + " was lost " +
                                          std::to_string(limits::kRestarts_max) + " times within " +
                                          std::to_string(limits::kRestartWindow.count() / 1000) +
                                          " s; the last time: " + placed->last_cause});
    }
    const auto again = async::Deadline::after(*context_.timers, limits::kLookEvery);
    co_await changed_.wait(again);
  }
}

void Company::tend_processes() {
  const core::TimePoint now = context_.timers->now();
  for (const LocalProcesses::Ended& ended : processes_.collect(now)) {
    const core::Error cause{ErrorCode::kPeerLost, "its process " + ended.how};
    const bool expected = dismissing_ || drains_.knows(ended.node);
    if (!ended.joined && !expected)
      hooks_.note(lost_text(ended.node, cause) + last_words(last_lines_of(ended.node)));
    if (ended.over_and_over) {
      fail_run({ErrorCode::kResources,
                "the process of " + ended.node + " cannot be kept up: it " + ended.how});
    }
    give_up(ended.node, cause);
  }
  for (const std::string& node : processes_.kill_late(now))
    hooks_.note(node + " did not join in time; its process is started again");
  if (failed_) return;
  const auto started = processes_.start_due(now);
  const bool full = !started && started.error().code == ErrorCode::kNoRoom;
  if (!std::exchange(no_room_, full) && full) hooks_.note(started.error().message + "; waiting");
  if (!started && !full) fail_run(started.error());
}

// Who belongs to a run does not take part in another, though that has its address and token.
core::Result<void> Company::check_run(const Join& request) const {
  if (request.run_id == 0 || request.run_id == options_.run_id) return {};
  return core::fail(ErrorCode::kNotFound, "this is " + run_words(options_.run_id, options_.run) +
                                              ", and " + request.name + " belongs to " +
                                              run_words(request.run_id, request.run));
}

async::task<core::Result<Joined>> Company::on(Join request) {
  if (dismissing_) co_return core::fail(ErrorCode::kPeerLost, "the run has ended");
  if (auto ours = check_run(request); !ours) {
    hooks_.note("refused: " + ours.error().message);
    co_return ours.failure();
  }
  const bool brings = offers(request, kAttachedEnvironment) || offers(request, "learn");
  if (brings && !options_.episodes) {
    co_return core::fail(ErrorCode::kUnsupported,
                         "this run has no episodes, so it learns from no environment",
                         "start it with --env.attached true, or with an environment of its own");
  }
  const bool drained = drains_.is_back(request);
  if (drained) {
    request.roles.clear();
    request.hosted.clear();
  }
  if (auto in = membership_.join(request, context_.timers->now()); !in) {
    hooks_.note("refused: " + in.error().message);
    co_return in.failure();
  }
  if (drained) {
    context_.scope->spawn("dismiss " + request.name, dismiss(request.name));
  } else {
    drains_.forget(request.name);
  }
  const bool ours = processes_.has(request.name);
  processes_.joined(request.name);
  if (!ours && !request.roles.empty()) {
    hooks_.note(request.name + " joined from " + request.host + " (" +
                std::to_string(request.cores) + " cores)");
  }
  if (offers(request, "attach")) admission_.allow_kind(request.name, "reward");
  if (offers(request, "serve")) admission_.allow_kind(request.name, "serve");
  if (offers(request, "learn")) admission_.allow_kind(request.name, "environment");
  if (offers(request, "generator") && !ours) {
    placement_.want("generator", adoption_.name_generator(request, placement_), request.name, true);
  }
  if (offers(request, kAttachedEnvironment)) {
    const std::string role = "environment/" + request.name.substr(std::strlen("node/"));
    placement_.want(kAttachedEnvironment, role, request.name, true);
  }
  Joined joined{options_.run_id, request.name, adopt(request),
                static_cast<std::uint32_t>(options_.head_wait.count() / 1'000'000), options_.run};
  placement_.node_in(request.name, request.roles);
  changed_.notify_all();
  co_return joined;
}

// Takes over what fits of the roles that the node plays since an earlier head, and returns their
// names.
std::vector<std::string> Company::adopt(const Join& request) {
  std::vector<std::string> names;
  if (resting_) return names;
  for (const HostedRole& kept : adoption_.keep(request, placement_)) {
    admission_.expect(request.name, kept.name, kept.epoch);
    context_.scope->spawn("take over " + kept.name, take_over(kept.name, kept.epoch));
    names.push_back(kept.name);
  }
  return names;
}

async::task<void> Company::take_over(std::string role, std::uint64_t epoch) {
  auto waited = arrived(role, epoch);
  const bool there = co_await std::move(waited);
  if (!there) {
    const std::string cause = role + " was kept and did not introduce itself";
    lose_role(role, epoch, {ErrorCode::kPeerLost, cause});
  } else if (!classes_.check(role)) {
    auto refused = refuse_class(*placement_.find(role));
    co_await std::move(refused);
  } else if (placement_.up(role, epoch)) {
    hooks_.note(role + " plays on");
    hooks_.role_up(role);
    changed_.notify_all();
  }
}

void Company::end_leftovers() {
  const core::Error cause{ErrorCode::kInternal, "its weights are those of a policy that is gone"};
  for (const HostedRole& left : adoption_.leftovers(placement_)) {
    if (!placement_.stop(left.name, left.epoch, cause)) continue;
    context_.scope->spawn("restart " + left.name, take_down(left.name, left.epoch, cause));
  }
}

async::task<core::Result<Ack>> Company::on(Beat request) {
  if (!membership_.beat(request, context_.timers->now())) {
    co_return core::fail(ErrorCode::kPeerLost, "the company has given " + request.node + " up",
                         "join again");
  }
  co_return Ack{};
}

async::task<core::Result<Ack>> Company::on(PutLog request) {
  const Member* const member = membership_.find(request.node);
  if (member == nullptr) {
    co_return core::fail(ErrorCode::kPeerLost, "the company does not have " + request.node);
  }
  if (hooks_.log) hooks_.log(std::move(request), member->join.pid);
  co_return Ack{};
}

async::task<core::Result<Status>> Company::on(QueryStatus) {
  TROUPE_CO_TRY_ASSIGN(json, co_await hooks_.status());
  co_return Status{std::move(json)};
}

async::task<core::Result<RewardsChanged>> Company::on(AttachReward request) {
  if (!co_await arrived(request.peer, 1)) {
    co_return core::fail(ErrorCode::kPeerLost,
                         "the reward role " + request.peer + " did not introduce itself");
  }
  auto attached = hooks_.attach(std::move(request));
  co_return co_await std::move(attached);
}

async::task<core::Result<RewardsChanged>> Company::on(DetachReward request) {
  const std::string* const bringer = core::find_value(brought_, "reward/" + request.name);
  const std::string node = bringer == nullptr ? "" : *bringer;
  const std::uint64_t epoch = introduced(node);
  auto detached = hooks_.detach(std::move(request));
  auto changed = co_await std::move(detached);
  const bool same = introduced(node) == epoch;  // it may have come back meanwhile
  if (changed && same && epoch > 0) context_.scope->spawn("dismiss " + node, dismiss(node));
  co_return changed;
}

// Asks a node to end. One that does not answer is given up later, for its silence. A node may end
// before its answer is on the way: then it has left, as it was asked to.
async::task<core::Result<void>> Company::dismiss(std::string node) {
  const auto deadline = async::Deadline::after(*context_.timers, cluster::limits::kLinkAnswer_max);
  auto frame = wire::shutdown_frame(context_.transport->new_request(deadline));
  auto answered = co_await context_.transport->call(node, std::move(frame), deadline);
  if (!answered && membership_.find(node) != nullptr)
    hooks_.note(node + " could not be dismissed: " + answered.error().message);
  co_return core::Result<void>();
}

void Company::look_at_silence() {
  for (const Membership::Change& change :
       membership_.look(context_.timers->now(), hooks_.traffic)) {
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.1f s", change.silent_s);
    if (change.health == NodeHealth::kSuspect) {
      hooks_.note(change.name + " has been silent for " + seconds);
    } else if (change.health == NodeHealth::kAlive) {
      hooks_.note(change.name + " is heard again");
    } else {
      processes_.kill(change.name);
      give_up(change.name,
              {ErrorCode::kPeerLost, std::string("frozen: no sign of life for ") + seconds});
    }
  }
}

void Company::give_up(const std::string& node, const core::Error& cause) {
  introduced_.erase(node);
  const Member* const member = membership_.find(node);
  // Its link may have broken before it asked to join.
  if (member == nullptr) return admission_.forget(node);
  // Expected ends are not reported.
  if (!member->join.roles.empty() && !dismissing_) {
    const bool expected = cause.message.ends_with("it has stopped") || drains_.is_expected(node);
    if (expected) {
      hooks_.note(node + " has left");
    } else {
      note_lost(*member, cause);
    }
  }
  membership_.remove(node);
  admission_.forget(node);
  const core::Error why{ErrorCode::kPeerLost, lost_text(node, cause)};
  hooks_.fence(node, why);
  for (const std::string& role : placement_.node_out(node, why, context_.timers->now())) {
    hooks_.fence(role, why);
    hooks_.role_lost(role, why);
  }
  const auto brought = brought_;
  for (const auto& [role, bringer] : brought) {
    if (bringer != node) continue;
    hooks_.fence(role, why);
    on_lost(role, 0, why);
  }
  // A generator that a guest brought goes with it.
  const auto roles = placement_.roles();
  for (const auto& [name, placed] : roles) {
    if (placed.bound != node || processes_.has(node)) continue;
    placement_.drop(name);
    introduced_.erase(name);
  }
  changed_.notify_all();
}

std::vector<std::string> Company::last_lines_of(const std::string& node) const {
  return hooks_.last_lines ? hooks_.last_lines(node) : std::vector<std::string>();
}

void Company::note_lost(const Member& member, const core::Error& cause) {
  const std::string& node = member.join.name;
  LostNode lost{node, member.join.host, cause.message, context_.timers->now(), last_lines_of(node)};
  hooks_.note(lost_text(node, cause) + last_words(lost.last_lines));
  lost_nodes_.add(std::move(lost));
}

void Company::restart(const std::string& role, std::uint64_t epoch, const core::Error& cause) {
  context_.scope->spawn("restart " + role, stop_role(role, epoch, cause));
}

async::task<void> Company::stop_role(std::string role, std::uint64_t epoch, core::Error cause) {
  // Without an answer the role may have ended: leaves the transport time to report why.
  if (!was_answered(cause.code)) {
    co_await async::sleep_for(*context_.timers, limits::kSuspectAfter);
  }
  if (placement_.stop(role, epoch, cause)) {
    co_await take_down(std::move(role), epoch, std::move(cause));
  }
}

// The rest of a stop that the placement knows of.
async::task<void> Company::take_down(std::string role, std::uint64_t epoch, core::Error cause) {
  const bool moves = placement_.find(role)->moves;
  hooks_.note(role + (moves ? " is taken down: " : " is started again: ") + cause.message);
  hooks_.role_lost(role, cause);
  const RoleContext context = context_.with_deadline(cluster::limits::kShutdownDeadline);
  StopRole stop{role, epoch};
  std::string node = placement_.find(role)->node;
  auto stopped = co_await ask(context, std::move(node), std::move(stop));
  // If it does not stop, the next start's epoch fences it.
  if (!stopped) end_rank(role, epoch);
  lose_role(role, epoch, cause);
}

std::uint64_t Company::introduced(const std::string& name) const {
  const std::uint64_t* const epoch = core::find_value(introduced_, name);
  return epoch == nullptr ? 0 : *epoch;
}

void Company::on_arrived(const wire::Hello& hello, const std::string& origin) {
  std::uint64_t& epoch = introduced_[hello.name];
  epoch = std::max(epoch, hello.epoch);
  if (hello.name.starts_with("node/")) return;  // it will ask to join
  note_class(hello);
  if (placement_.find(hello.name) == nullptr) {
    brought_[hello.name] = admission_.node_of(origin);
    if (hello.name.starts_with("environment/")) hooks_.role_up(hello.name);
  }
  changed_.notify_all();
}

void Company::on_lost(const std::string& name, std::uint64_t epoch, const core::Error& cause) {
  if (name.starts_with("node/")) {
    context_.scope->spawn("lost " + name, give_up_soon(name, epoch, cause));
  } else if (placement_.find(name) != nullptr) {
    lose_role(name, epoch, cause);
  } else {
    introduced_.erase(name);
    brought_.erase(name);
    hooks_.role_lost(name, cause);
  }
}

// A process's socket closes a moment before the kernel reports why the process ended, so this waits
// for that report. It ignores reports about a process that has already been replaced.
async::task<void> Company::give_up_soon(std::string node, std::uint64_t epoch, core::Error cause) {
  if (processes_.has(node)) {
    co_await async::sleep_for(*context_.timers, limits::kLookEvery);
    tend_processes();
  }
  if (introduced(node) <= epoch) give_up(node, cause);
}

void Company::lose_role(const std::string& role, std::uint64_t epoch, const core::Error& cause) {
  const PlacedRole* const placed = placement_.find(role);
  const bool was_up = placed != nullptr && placed->state == RoleState::kUp;
  const bool was_told = placed != nullptr && placed->state == RoleState::kStopping;
  if (!placement_.lost(role, epoch, cause, context_.timers->now())) return;
  if (!parting_ && !failed_ && !was_told) hooks_.note(lost_text(role, cause));
  if (was_up) hooks_.role_lost(role, cause);
  changed_.notify_all();
}

void Company::fail_run(const core::Error& error) {
  if (std::exchange(failed_, true)) return;
  hooks_.hopeless(error);
  changed_.notify_all();
}

async::task<void> Company::end_run() {
  resting_ = parting_ = true;
  changed_.notify_all();  // ranks that wait for a meeting
  const core::Error over{ErrorCode::kClosed, "the run has ended"};
  const RoleContext context = context_.with_deadline(cluster::limits::kShutdownDeadline);
  for (const PlacedRole& placed : placement_.stop_all()) {
    if (placed.state == RoleState::kUp) hooks_.role_lost(placed.name, over);
    StopRole stop{placed.name, placed.epoch};
    auto stopped = co_await ask(context, placed.node, std::move(stop));
    if (!stopped) hooks_.note(placed.name + " could not be stopped: " + stopped.error().message);
    placement_.retire(placed.name);
    hooks_.fence(placed.name, over);
    changed_.notify_all();
  }
}

async::task<void> Company::dismiss_all(async::Deadline deadline, bool over) {
  resting_ = parting_ = dismissing_ = true;
  failed_ = true;  // no process is started any more
  processes_.kill_unjoined();
  std::vector<async::task<core::Result<void>>> all;
  for (const auto& [name, member] : membership_.members()) {
    if (over || !offers(member.join, "attach")) all.push_back(dismiss(name));
  }
  auto told = co_await async::all(std::move(all));
  if (!told) hooks_.note(told.error().message);
  for (;;) {
    tend_processes();
    if (!processes_.any_running() || deadline.remaining(*context_.timers) <= core::Duration::zero())
      co_return;
    co_await async::sleep_for(*context_.timers, limits::kLookEvery / 10);
  }
}

}  // namespace troupe::actors
