// How a node leaves because somebody asked for it: its roles finish or go elsewhere, then it is
// dismissed.
#include "actors/company/company.hpp"
#include "actors/limits.hpp"
#include "runtime/cluster/limits.hpp"

namespace troupe::actors {

using core::ErrorCode;

// The whole name of a node that may be drained.
core::Result<std::string> Company::node_named(const std::string& name) const {
  const std::string node = name.starts_with("node/") ? name : "node/" + name;
  if (node == "node/head") {
    return core::fail(ErrorCode::kInvalidArgument,
                      "the head cannot be drained: it has the data and the order of the run",
                      "end the run with Ctrl-C, which saves it");
  }
  const Member* const member = membership_.find(node);
  const bool here = (member != nullptr && !member->join.roles.empty()) || processes_.has(node);
  if (here || drains_.knows(node)) return node;
  std::string others;
  for (const auto& [other, is] : membership_.members()) {
    if (!is.join.roles.empty()) others += (others.empty() ? "" : ", ") + other.substr(5);
  }
  return core::fail(ErrorCode::kNotFound, "there is no node " + node.substr(5) + " in this run",
                    "its nodes are " + (others.empty() ? "not there yet" : others));
}

core::Result<void> Company::begin_drain(const std::string& node) {
  if (dismissing_) return core::fail(ErrorCode::kPeerLost, "the run has ended");
  TROUPE_TRY(may_leave(node, placement_, brought_));
  const Member* const member = membership_.find(node);
  drains_.begin(node, member == nullptr ? Join{} : member->join);
  placement_.drain(node);
  processes_.retire(node);
  hooks_.note(node + " is drained: it gets no new work, and leaves when it has none");
  return {};
}

async::task<core::Result<Ack>> Company::on(DrainNode request) {
  TROUPE_CO_TRY_ASSIGN(node, node_named(request.node));
  if (!drains_.knows(node)) {
    TROUPE_CO_TRY(begin_drain(node));
    const std::chrono::milliseconds wait(request.wait_ms);
    context_.scope->spawn("drain " + node, drain(node, wait));
  }
  while (drains_.knows(node) && !drains_.is_gone(node))
    co_await changed_.wait(async::Deadline::none());
  co_return Ack{};
}

async::task<void> Company::drain(std::string node, core::Duration wait) {
  const auto deadline = async::Deadline::after(*context_.timers, wait);
  const async::Deadline starting{deadline.at + cluster::limits::kShutdownDeadline};
  for (;;) {
    std::string role;
    std::uint64_t epoch = 0;
    bool busy = false;  // a role is being started or stopped there
    for (const auto& [name, placed] : placement_.roles()) {
      if (placed.node != node) continue;
      if (placed.state != RoleState::kUp) busy = true;
      if (placed.state != RoleState::kUp || epoch != 0) continue;
      role = name;
      epoch = placed.epoch;
    }
    if (epoch != 0) {
      auto taken = take_away(std::move(role), epoch, deadline.remaining(*context_.timers));
      co_await std::move(taken);
    } else {
      if (!busy) break;
      if (!co_await changed_.wait(starting)) break;
    }
  }
  const auto roles = placement_.roles();
  for (const auto& [name, placed] : roles) {
    if (placed.bound != node) continue;
    placement_.drop(name);
    introduced_.erase(name);
  }
  co_await see_off(node);
  drains_.done(node);
  changed_.notify_all();
}

// Takes a role down once it has finished, or after `wait`. It starts on another node, if it may.
async::task<void> Company::take_away(std::string role, std::uint64_t epoch, core::Duration wait) {
  const PlacedRole placed = *placement_.find(role);
  const bool takes_work = placed.kind == "generator" || placed.kind == kAttachedEnvironment;
  if (takes_work && hooks_.drain) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(wait);
    DrainGenerator request{role, static_cast<std::uint32_t>(ms.count())};
    auto drained = hooks_.drain(std::move(request));
    auto answer = co_await std::move(drained);
    static_cast<void>(answer);  // without a controller it has no work
  }
  core::Error cause{ErrorCode::kClosed, placed.node + " is drained"};
  if (!placement_.move(role, epoch, cause)) co_return;
  co_await take_down(role, epoch, cause);
  hooks_.fence(role, cause);
}

// Dismisses a node and waits until it has left. One that does not leave is let go as a lost one is.
async::task<void> Company::see_off(std::string node) {
  drains_.dismissed(node);
  if (membership_.find(node) == nullptr) co_return;
  auto told = co_await dismiss(node);
  static_cast<void>(told);  // it is given up below
  const auto deadline =
      async::Deadline::after(*context_.timers, cluster::limits::kShutdownDeadline);
  while (membership_.find(node) != nullptr) {
    if (!co_await changed_.wait(deadline)) break;
  }
  if (membership_.find(node) == nullptr) co_return;
  hooks_.note(node + " was dismissed and has not left; it is given up");
  processes_.kill(node);
  give_up(node, {ErrorCode::kPeerLost, "it did not leave in time"});
}

}  // namespace troupe::actors
