#include "actors/company/node_drain.hpp"

#include "runtime/cluster/limits.hpp"

namespace troupe::actors::company {

// The whole name of a node that may be drained.
core::Result<std::string> NodeDrain::node_named(const std::string& name) const {
  const std::string node = name.starts_with("node/") ? name : "node/" + name;
  if (node == "node/head") {
    return core::fail(ErrorCode::kInvalidArgument,
                      "the head cannot be drained: it has the data and the order of the run",
                      "end the run with Ctrl-C, which saves it");
  }
  const Member* const member = nodes_.find(node);
  const bool here = (member != nullptr && !member->join.roles.empty()) || processes_.has(node);
  if (here || nodes_.drains().knows(node)) return node;
  std::string others;
  for (const auto& [other, is] : nodes_.members()) {
    if (!is.join.roles.empty()) others += (others.empty() ? "" : ", ") + other.substr(5);
  }
  return core::fail(ErrorCode::kNotFound, "there is no node " + node.substr(5) + " in this run",
                    "its nodes are " + (others.empty() ? "not there yet" : others));
}

core::Result<void> NodeDrain::begin(const std::string& node) {
  if (nodes_.dismissing()) return core::fail(ErrorCode::kPeerLost, "the run has ended");
  TROUPE_TRY(may_leave(node, roles_.placement(), arrivals_.brought()));
  const Member* const member = nodes_.find(node);
  nodes_.drains().begin(node, member == nullptr ? Join{} : member->join);
  roles_.placement().drain(node);
  processes_.retire(node);
  port_.note(node + " is drained: it gets no new work, and leaves when it has none");
  return {};
}

async::task<core::Result<Ack>> NodeDrain::on(DrainNode request) {
  TROUPE_CO_TRY_ASSIGN(node, node_named(request.node));
  if (!nodes_.drains().knows(node)) {
    TROUPE_CO_TRY(begin(node));
    const std::chrono::milliseconds wait(request.wait_ms);
    context_.scope->spawn("drain " + node, drain(node, wait));
  }
  while (nodes_.drains().knows(node) && !nodes_.drains().is_gone(node))
    co_await changed_.wait(async::Deadline::none());
  co_return Ack{};
}

async::task<void> NodeDrain::drain(std::string node, core::Duration wait) {
  const auto deadline = async::Deadline::after(*context_.timers, wait);
  const async::Deadline starting{deadline.at + cluster::limits::kShutdownDeadline};
  for (;;) {
    std::string role;
    std::uint64_t epoch = 0;
    bool busy = false;  // a role is being started or stopped there
    for (const auto& [name, placed] : roles_.placement().roles()) {
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
  roles_.drop_bound(node);
  co_await see_off(node);
  nodes_.drains().done(node);
  changed_.notify_all();
}

// Takes a role down once it has finished, or after `wait`. It starts on another node, if it may.
async::task<void> NodeDrain::take_away(std::string role, std::uint64_t epoch, core::Duration wait) {
  const PlacedRole placed = *roles_.placement().find(role);
  const bool takes_work = placed.kind == "generator" || placed.kind == kAttachedEnvironment;
  if (takes_work) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(wait);
    DrainGenerator request{role, static_cast<std::uint32_t>(ms.count())};
    auto drained = port_.drain(std::move(request));
    auto answer = co_await std::move(drained);
    static_cast<void>(answer);  // without a controller it has no work
  }
  core::Error cause{ErrorCode::kClosed, placed.node + " is drained"};
  if (!roles_.placement().move(role, epoch, cause)) co_return;
  co_await roles_.take_down(role, epoch, cause);
  port_.fence(role, epoch, cause);
}

// Dismisses a node and waits until it has left. One that does not leave is let go as a lost one is.
async::task<void> NodeDrain::see_off(std::string node) {
  nodes_.drains().dismissed(node);
  if (nodes_.find(node) == nullptr) co_return;
  auto told = co_await nodes_.dismiss(node);
  static_cast<void>(told);  // it is given up below
  const auto deadline =
      async::Deadline::after(*context_.timers, cluster::limits::kShutdownDeadline);
  while (nodes_.find(node) != nullptr) {
    if (!co_await changed_.wait(deadline)) break;
  }
  if (nodes_.find(node) == nullptr) co_return;
  port_.note(node + " was dismissed and has not left; it is given up");
  processes_.kill(node);
  nodes_.give_up(node, {ErrorCode::kPeerLost, "it did not leave in time"});
}

}  // namespace troupe::actors::company
