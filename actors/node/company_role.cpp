// Who is in, and what happens when somebody no longer is.
#include "actors/node/company_role.hpp"

#include "actors/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "runtime/cluster/limits.hpp"

#include <algorithm>

namespace troupe::actors {

using core::ErrorCode;

namespace {

// Errors of a start that another start would repeat.
bool is_final(ErrorCode code) {
  return code == ErrorCode::kConfig || code == ErrorCode::kData || code == ErrorCode::kNumeric ||
         code == ErrorCode::kInvalidArgument || code == ErrorCode::kUnsupported ||
         code == ErrorCode::kNotFound;
}

// The other side said so itself.
bool was_answered(ErrorCode code) {
  return code != ErrorCode::kPeerLost && code != ErrorCode::kClosed &&
         code != ErrorCode::kOverloaded;
}

// "generator/0 is lost: why", also when the cause begins so.
std::string lost_text(const std::string& name, const core::Error& cause) {
  const std::string head = name + " is lost: ";
  return cause.message.starts_with(head) ? cause.message : head + cause.message;
}

}  // namespace

CompanyRole::CompanyRole(RoleContext context,
                         CompanyOptions options,
                         Admission& admission,
                         NodeLauncher& launcher,
                         CompanyHooks hooks)
    : context_(std::move(context)),
      options_(std::move(options)),
      admission_(admission),
      launcher_(launcher),
      hooks_(std::move(hooks)),
      membership_(options_.arithmetic, options_.build),
      changed_(*context_.timers) {
  for (const LocalNode& node : options_.local_nodes)
    locals_.push_back({node, false, {}, false, 0});
  for (const WantedRole& role : options_.roles) {
    cast_.want(role.kind, role.name, role.bound);
    if (role.kind == "generator") ++next_generator_;
  }
}

async::task<core::Result<void>> CompanyRole::attend() {
  for (;;) {
    tend_local_nodes();
    look_at_silence();
    if (!resting_ && !failed_) start_due_roles();
    if (const auto part = cast_.hopeless(context_.timers->now())) {
      fail_run({ErrorCode::kPeerLost, part->name + " was lost " +
                                          std::to_string(limits::kRestarts_max) + " times within " +
                                          std::to_string(limits::kRestartWindow.count() / 1000) +
                                          " s; the last time: " + part->last_cause});
    }
    const auto again = async::Deadline::after(*context_.timers, limits::kLookEvery);
    co_await changed_.wait(again);
  }
}

// ---- processes of this host
// ----------------------------------------------------------------------------

void CompanyRole::tend_local_nodes() {
  const core::TimePoint now = context_.timers->now();
  for (const NodeLauncher::Exit& exit : launcher_.exits()) {
    LocalState* const state = local(exit.node);
    if (state == nullptr) continue;
    const core::Error ended{ErrorCode::kPeerLost, "its process " + exit.cause};
    if (!state->joined && !dismissing_) hooks_.note(lost_text(exit.node, ended));
    state->running = state->joined = false;
    ++state->failures;
    state->start_at =
        now + limits::kRestartAfter * (1 << std::min<std::uint64_t>(state->failures, 5));
    if (state->failures > limits::kRestarts_max) {
      fail_run({ErrorCode::kResources,
                "the process of " + exit.node + " cannot be kept up: it " + exit.cause});
    }
    give_up(exit.node, ended);
  }
  for (LocalState& state : locals_) {
    if (state.running && !state.joined && now - state.start_at > limits::kNodeStart) {
      hooks_.note(state.node.name + " did not join in time; its process is started again");
      launcher_.kill(state.node.name);  // its end shows among the exits
    }
    if (state.running || now < state.start_at || failed_) continue;
    const std::string pass = admission_.issue_pass();
    if (auto started = launcher_.start(state.node.name, state.node.kinds, pass); !started) {
      fail_run(started.error());
      return;
    }
    state.running = true;
    state.start_at = now;
  }
}

CompanyRole::LocalState* CompanyRole::local(const std::string& node) {
  const auto found = std::find_if(locals_.begin(), locals_.end(),
                                  [&](const LocalState& state) { return state.node.name == node; });
  return found == locals_.end() ? nullptr : &*found;
}

// ---- nodes
// -----------------------------------------------------------------------------------------------

async::task<core::Result<Joined>> CompanyRole::on(Join request) {
  if (dismissing_) co_return core::fail(ErrorCode::kPeerLost, "the run has ended");
  if (auto in = membership_.join(request, context_.timers->now()); !in) {
    hooks_.note("refused: " + in.error().message);
    co_return in.failure();
  }
  LocalState* const state = local(request.name);
  if (state != nullptr) {
    state->joined = true;
    state->failures = 0;
  } else if (!request.roles.empty()) {
    hooks_.note(request.name + " joined from " + request.host + " (" +
                std::to_string(request.cores) + " cores)");
  }
  if (offers(request, "attach")) admission_.allow_kind(request.name, "reward");
  if (offers(request, "serve")) admission_.allow_kind(request.name, "serve");
  if (offers(request, "generator") && state == nullptr) {
    const std::string name = "generator/" + std::to_string(next_generator_++);
    cast_.want("generator", name, request.name, true);
  }
  cast_.node_in(request.name, request.roles);
  changed_.notify_all();
  co_return Joined{options_.run_id, request.name};
}

async::task<core::Result<Ack>> CompanyRole::on(Beat request) {
  if (!membership_.beat(request.node, context_.timers->now())) {
    co_return core::fail(ErrorCode::kPeerLost,
                         "the company has given " + request.node + " up; join again");
  }
  co_return Ack{};
}

async::task<core::Result<Status>> CompanyRole::on(QueryStatus) {
  TROUPE_CO_TRY_ASSIGN(json, co_await hooks_.status());
  co_return Status{std::move(json)};
}

// ---- rewards that guests bring
// -------------------------------------------------------------------------

async::task<core::Result<RewardsChanged>> CompanyRole::on(AttachReward request) {
  if (!co_await arrived(request.peer, 1)) {
    co_return core::fail(ErrorCode::kPeerLost,
                         "the reward role " + request.peer + " did not introduce itself");
  }
  auto attached = hooks_.attach(std::move(request));
  auto changed = co_await std::move(attached);
  co_return changed;
}

async::task<core::Result<RewardsChanged>> CompanyRole::on(ReweightReward request) {
  auto reweighted = hooks_.reweight(std::move(request));
  auto changed = co_await std::move(reweighted);
  co_return changed;
}

async::task<core::Result<RewardsChanged>> CompanyRole::on(DetachReward request) {
  const auto found = brought_.find("reward/" + request.name);
  const std::string node = found == brought_.end() ? "" : found->second;
  auto detached = hooks_.detach(std::move(request));
  auto changed = co_await std::move(detached);
  if (changed && !node.empty()) context_.scope->spawn("dismiss " + node, dismiss(node));
  co_return changed;
}

// A node that does not answer any more is seen to by its silence.
async::task<core::Result<void>> CompanyRole::dismiss(std::string node) {
  const auto deadline = async::Deadline::after(*context_.timers, cluster::limits::kLinkSilence_max);
  auto frame = wire::shutdown_frame(context_.transport->new_request(deadline));
  auto answered = co_await context_.transport->call(node, std::move(frame), deadline);
  if (!answered) hooks_.note(node + " could not be dismissed: " + answered.error().message);
  co_return core::Result<void>();
}

void CompanyRole::look_at_silence() {
  for (const Membership::Change& change : membership_.look(context_.timers->now())) {
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.1f s", change.silent_s);
    if (change.health == NodeHealth::kSuspect) {
      hooks_.note(change.name + " has been silent for " + seconds);
    } else if (change.health == NodeHealth::kAlive) {
      hooks_.note(change.name + " is heard again");
    } else {
      if (local(change.name) != nullptr) launcher_.kill(change.name);
      give_up(change.name,
              {ErrorCode::kPeerLost, std::string("frozen: no sign of life for ") + seconds});
    }
  }
}

void CompanyRole::give_up(const std::string& node, const core::Error& cause) {
  introduced_.erase(node);
  const Member* const member = membership_.find(node);
  if (member == nullptr) {
    admission_.forget(node);  // its link broke before it asked to join
    return;
  }
  // An end that was asked for is no news.
  if (!member->join.roles.empty() && !dismissing_) {
    hooks_.note(cause.message.ends_with("it has stopped") ? node + " has left"
                                                          : lost_text(node, cause));
  }
  membership_.remove(node);
  admission_.forget(node);
  const core::Error why{ErrorCode::kPeerLost, lost_text(node, cause)};
  hooks_.fence(node, why);
  for (const std::string& role : cast_.node_out(node, why, context_.timers->now())) {
    hooks_.fence(role, why);
    hooks_.role_lost(role, why);
  }
  for (auto place = brought_.begin(); place != brought_.end();) {
    const std::string role = place->first;
    const bool theirs = place->second == node;
    ++place;
    if (!theirs) continue;
    hooks_.fence(role, why);
    on_lost(role, 0, why);
  }
  // A generator that a guest brought goes with it.
  std::vector<std::string> theirs;
  for (const auto& [name, part] : cast_.parts()) {
    if (part.bound == node && local(node) == nullptr) theirs.push_back(name);
  }
  for (const std::string& name : theirs) {
    cast_.drop(name);
    introduced_.erase(name);
  }
  changed_.notify_all();
}

// ---- roles
// -----------------------------------------------------------------------------------------------

void CompanyRole::start_due_roles() {
  for (Part& part : cast_.start_due(context_.timers->now())) {
    admission_.expect(part.node, part.name, part.epoch);
    const std::string what = "start " + part.name;
    context_.scope->spawn(what, start_role(std::move(part)));
  }
}

async::task<core::Result<void>> CompanyRole::start_role(Part part) {
  Spawn spawn;
  spawn.kind = part.kind;
  spawn.name = part.name;
  spawn.run_id = options_.run_id;
  spawn.epoch = part.epoch;
  if (const auto found = options_.threads.find(part.kind); found != options_.threads.end()) {
    spawn.threads = found->second;
  }
  spawn.config = options_.config;
  spawn.settings = options_.settings;
  if (local(part.node) == nullptr && hooks_.contents) {
    auto asked = hooks_.contents();
    auto contents = co_await std::move(asked);
    for (auto& setting : contents)
      spawn.settings.push_back(std::move(setting));
  }
  RoleContext context = context_;
  context.call_deadline = limits::kSpawnDeadline;
  auto spawned = co_await ask(context, part.node, std::move(spawn));
  if (!spawned) {
    not_started(part, without_name(spawned.error(), part.node));
    co_return core::Result<void>();
  }
  if (!co_await arrived(part.name, part.epoch)) {
    lose_role(part.name, part.epoch,
              {ErrorCode::kPeerLost, part.name + " was started and did not introduce itself"});
    co_return core::Result<void>();
  }
  if (cast_.up(part.name, part.epoch)) {
    hooks_.role_up(part.name);
    changed_.notify_all();
  }
  co_return core::Result<void>();
}

// A node that cannot play a role is struck off for its kind. The run waits for another node, and
// ends only where nobody else can play the role: a node of this host says what all of them would.
void CompanyRole::not_started(const Part& part, const core::Error& error) {
  const Part* const now = cast_.find(part.name);
  if (now == nullptr || now->epoch != part.epoch) return;  // that node is gone meanwhile
  const bool for_good = is_final(error.code);
  const bool guest = local(part.node) == nullptr;
  const bool stand_in = guest || (part.kind == "generator" && cast_.any_up(part.kind));
  if (for_good && !stand_in) fail_run(error.within(part.node));
  const bool strikes = for_good ? stand_in : guest && !part.guest;
  if (!was_answered(error.code) || !strikes) return lose_role(part.name, part.epoch, error);
  hooks_.note(part.node + " cannot play " + part.name + ": " + error.message);
  const core::TimePoint rested = context_.timers->now() + limits::kRestartRest;
  cast_.strike(part.node, part.kind, for_good ? core::TimePoint::max() : rested);
  cast_.lost(part.name, part.epoch, error.within(part.node), context_.timers->now());
  if (part.guest) {
    cast_.drop(part.name);
  } else if (!cast_.has_candidate(part.kind)) {
    hooks_.note("no node is left that can play " + part.name +
                "; the run waits for one with --roles " + part.kind);
  }
  changed_.notify_all();
}

void CompanyRole::restart(const std::string& role, std::uint64_t epoch, const core::Error& cause) {
  context_.scope->spawn("restart " + role, stop_role(role, epoch, cause));
}

async::task<core::Result<void>> CompanyRole::stop_role(std::string role,
                                                       std::uint64_t epoch,
                                                       core::Error cause) {
  // Who ends without a word is seen by the transport, too, which says more of it.
  if (!was_answered(cause.code)) {
    co_await async::sleep_for(*context_.timers, limits::kSuspectAfter);
  }
  if (!cast_.stop(role, epoch, cause)) co_return core::Result<void>();
  hooks_.note(role + " is started again: " + cause.message);
  hooks_.role_lost(role, cause);
  RoleContext context = context_;
  context.call_deadline = cluster::limits::kShutdownDeadline;
  StopRole stop{role};
  std::string node = cast_.find(role)->node;
  auto stopped = co_await ask(context, std::move(node), std::move(stop));
  static_cast<void>(stopped);  // one that does not stop is fenced by the next life's epoch
  lose_role(role, epoch, cause);
  co_return core::Result<void>();
}

async::task<bool> CompanyRole::arrived(std::string role, std::uint64_t epoch) {
  const auto deadline = async::Deadline::after(*context_.timers, cluster::limits::kLinkSilence_max);
  while (introduced(role) < epoch) {
    if (!co_await changed_.wait(deadline)) co_return introduced(role) >= epoch;
  }
  co_return true;
}

std::uint64_t CompanyRole::introduced(const std::string& name) const {
  const auto found = introduced_.find(name);
  return found == introduced_.end() ? 0 : found->second;
}

void CompanyRole::on_arrived(const wire::Hello& hello, const std::string& origin) {
  std::uint64_t& epoch = introduced_[hello.name];
  epoch = std::max(epoch, hello.epoch);
  if (hello.name.starts_with("node/")) return;  // it will ask to join
  if (cast_.find(hello.name) == nullptr) brought_[hello.name] = admission_.node_of(origin);
  changed_.notify_all();
}

void CompanyRole::on_lost(const std::string& name, std::uint64_t epoch, const core::Error& cause) {
  if (name.starts_with("node/")) {
    context_.scope->spawn("lost " + name, give_up_soon(name, epoch, cause));
  } else if (cast_.find(name) != nullptr) {
    lose_role(name, epoch, cause);
  } else {
    introduced_.erase(name);
    brought_.erase(name);
    hooks_.role_lost(name, cause);
  }
}

// The end of a process is seen by its socket first; what ended it the kernel tells a moment later.
// News of a process that another has followed already are no news.
async::task<core::Result<void>> CompanyRole::give_up_soon(std::string node,
                                                          std::uint64_t epoch,
                                                          core::Error cause) {
  if (local(node) != nullptr) {
    co_await async::sleep_for(*context_.timers, limits::kLookEvery);
    tend_local_nodes();
  }
  if (introduced(node) <= epoch) give_up(node, cause);
  co_return core::Result<void>();
}

void CompanyRole::lose_role(const std::string& role,
                            std::uint64_t epoch,
                            const core::Error& cause) {
  const Part* const part = cast_.find(role);
  const bool was_up = part != nullptr && part->state == PartState::kUp;
  const bool was_told = part != nullptr && part->state == PartState::kStopping;
  if (!cast_.lost(role, epoch, cause, context_.timers->now())) return;
  if (!parting_ && !failed_ && !was_told) hooks_.note(lost_text(role, cause));
  if (was_up) hooks_.role_lost(role, cause);
  changed_.notify_all();
}

void CompanyRole::fail_run(const core::Error& error) {
  if (std::exchange(failed_, true)) return;
  hooks_.hopeless(error);
  changed_.notify_all();
}

}  // namespace troupe::actors
