#include "actors/company/node_registry.hpp"

#include "actors/controller/limits.hpp"
#include "actors/protocol/run_words.hpp"
#include "runtime/cluster/limits.hpp"
#include "runtime/core/texts.hpp"

#include <cstdio>

namespace troupe::actors::company {

// Who belongs to a run does not take part in another, though that has its address and token.
core::Result<void> NodeRegistry::check(const Join& request) const {
  if (request.run_id == 0 || request.run_id == options_.run_id) return {};
  return core::fail(ErrorCode::kNotFound, "this is " + run_words(options_.run_id, options_.run) +
                                              ", and " + request.name + " belongs to " +
                                              run_words(request.run_id, request.run));
}

core::Result<void> NodeRegistry::take_in(Join& request) {
  if (dismissing_) return core::fail(ErrorCode::kPeerLost, "the run has ended");
  const auto refused = [this](const core::Error& error) {
    port_.note("refused: " + error.message);
    return core::Failure{error};
  };
  if (auto ours = check(request); !ours) return refused(ours.error());
  const bool brings = offers(request, kAttachedEnvironment) || offers(request, "learn");
  if (brings && !options_.episodes) {
    return core::fail(ErrorCode::kUnsupported,
                      "this run has no episodes, so it learns from no environment",
                      "start it with --env.attached true, or with an environment of its own");
  }
  const bool drained = drains_.is_back(request);
  if (drained) {
    request.roles.clear();
    request.hosted.clear();
  }
  if (auto in = membership_.join(request, context_.timers->now()); !in) return refused(in.error());
  if (drained) {
    context_.scope->spawn("dismiss " + request.name, dismiss(request.name));
  } else {
    drains_.forget(request.name);
  }
  processes_.joined(request.name);
  if (!processes_.has(request.name) && !request.roles.empty()) {
    port_.note(request.name + " joined from " + request.host + " (" +
               std::to_string(request.cores) + " cores)");
  }
  return {};
}

core::Result<Ack> NodeRegistry::beat(const Beat& request) {
  if (membership_.beat(request, context_.timers->now())) return Ack{};
  return core::fail(ErrorCode::kPeerLost, "the company has given " + request.node + " up",
                    "join again");
}

core::Result<Ack> NodeRegistry::keep_log(PutLog request) {
  const Member* const member = find(request.node);
  if (member == nullptr)
    return core::fail(ErrorCode::kPeerLost, "the company does not have " + request.node);
  port_.log(std::move(request), member->join.pid);
  return Ack{};
}

void NodeRegistry::look() {
  tend_processes();
  look_at_silence();
}

void NodeRegistry::tend_processes() {
  const core::TimePoint now = context_.timers->now();
  for (const LocalProcesses::Ended& ended : processes_.collect(now)) {
    const core::Error cause{ended.code, "its process " + ended.how};
    const bool expected = dismissing_ || drains_.knows(ended.node);
    if (!ended.joined && !expected)
      port_.note(lost_text(ended.node, cause) + last_words(port_.last_lines(ended.node)));
    if (ended.over_and_over) {
      roles_.fail(worn_out(ended.code, ErrorCode::kResources,
                           "the process of " + ended.node + " cannot be kept up: it " + ended.how +
                               last_words(port_.last_lines(ended.node))));
    }
    give_up(ended.node, cause);
    roles_.placement().explain(ended.node, {ended.code, lost_text(ended.node, cause)});
  }
  for (const std::string& node : processes_.kill_late(now))
    port_.note(node + " did not join in time; its process is started again");
  if (roles_.failed()) return;
  const auto started = processes_.start_due(now);
  const bool full = !started && started.error().code == ErrorCode::kNoRoom;
  if (!std::exchange(no_room_, full) && full) port_.note(started.error().message + "; waiting");
  if (!started && !full) roles_.fail(started.error());
}

void NodeRegistry::look_at_silence() {
  const auto heard = [this](const std::string& node) { return port_.heard(node); };
  for (const Membership::Change& change : membership_.look(context_.timers->now(), heard)) {
    const std::string seconds = core::printed("%.1f s", change.silent_s);
    if (change.health == NodeHealth::kSuspect) {
      port_.note(change.name + " has been silent for " + seconds);
    } else if (change.health == NodeHealth::kAlive) {
      port_.note(change.name + " is heard again");
    } else {
      processes_.kill(change.name);
      give_up(change.name, {ErrorCode::kPeerLost, "frozen: no sign of life for " + seconds});
    }
  }
}

void NodeRegistry::give_up(const std::string& node, const core::Error& cause) {
  const std::uint64_t epoch = arrivals_.epoch_of(node);
  arrivals_.forget(node);
  const Member* const member = find(node);
  // Its link may have broken before it asked to join.
  if (member == nullptr) return admission_.forget(node);
  if (!member->join.roles.empty() && !dismissing_) note_end(*member, cause);
  membership_.remove(node);
  admission_.forget(node);
  const core::Error why{ErrorCode::kPeerLost, lost_text(node, cause)};
  port_.fence(node, epoch, why);
  const core::Error told{cause.code, why.message};
  RolePlacement& placement = roles_.placement();
  for (const std::string& role : placement.node_out(node, told, context_.timers->now())) {
    port_.fence(role, placement.find(role)->epoch, why);
    port_.role_lost(role, why);
  }
  const auto brought = arrivals_.brought();
  for (const auto& [role, bringer] : brought)
    if (bringer == node) roles_.release(role, arrivals_.epoch_of(role), why);
  // A generator that a guest brought goes with it.
  if (!processes_.has(node)) roles_.drop_bound(node);
  changed_.notify_all();
}

void NodeRegistry::note_end(const Member& member, const core::Error& cause) {
  const std::string& node = member.join.name;
  if (cause.message.ends_with("it has stopped") || drains_.is_expected(node))
    return port_.note(node + " has left");
  LostNode lost{node, member.join.host, cause.message, context_.timers->now(),
                port_.last_lines(node)};
  port_.note(lost_text(node, cause) + last_words(lost.last_lines));
  lost_nodes_.add(std::move(lost));
}

// A process's socket closes a moment before the kernel reports why the process ended, so this waits
// for that report. It ignores reports about a process that has already been replaced.
async::task<void> NodeRegistry::give_up_soon(std::string node,
                                             std::uint64_t epoch,
                                             core::Error cause) {
  if (processes_.has(node)) {
    co_await async::sleep_for(*context_.timers, controller::limits::kLookEvery);
    tend_processes();
  }
  if (arrivals_.epoch_of(node) <= epoch) give_up(node, cause);
}

// A node may end before its answer is on the way: then it has left, as it was asked to.
async::task<core::Result<void>> NodeRegistry::dismiss(std::string node) {
  const auto deadline = async::Deadline::after(*context_.timers, cluster::limits::kLinkAnswer_max);
  auto frame = wire::shutdown_frame(context_.transport->new_request(deadline));
  auto answered = co_await context_.transport->call(node, std::move(frame), deadline);
  if (!answered && find(node) != nullptr)
    port_.note(node + " could not be dismissed: " + answered.error().message);
  co_return core::Result<void>();
}

async::task<void> NodeRegistry::dismiss_all(async::Deadline deadline, bool over) {
  dismissing_ = true;
  roles_.close();
  processes_.kill_unjoined();
  std::vector<async::task<core::Result<void>>> all;
  for (const auto& [name, member] : members()) {
    if (over || !offers(member.join, "attach")) all.push_back(dismiss(name));
  }
  auto told = co_await async::all(std::move(all));
  if (!told) port_.note(told.error().message);
  for (;;) {
    tend_processes();
    if (!processes_.any_running() || deadline.remaining(*context_.timers) <= core::Duration::zero())
      co_return;
    co_await async::sleep_for(*context_.timers, controller::limits::kLookEvery / 10);
  }
}

}  // namespace troupe::actors::company
