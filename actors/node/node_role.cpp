#include "actors/node/node_role.hpp"

#include "actors/node/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/containment.hpp"
#include "actors/protocol/limits.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/cluster/limits.hpp"

#include <algorithm>

namespace troupe::actors::node {

NodeRole::NodeRole(RoleContext context, Join self, NodePorts ports)
    : context_(std::move(context)), self_(std::move(self)), ports_(std::move(ports)) {}

void NodeRole::begin() {
  async::post(context_.scope->executor(),
              [this] { context_.scope->spawn("signs of life", attend()); });
}

async::task<void> NodeRole::attend() {
  const RoleContext patient = context_.with_deadline(actors::limits::kNodeStart);
  Join join = self_;
  join.hosted = ports_.roles->list();
  join.config = ports_.roles->config();
  const auto hosted = join.hosted;
  auto joined = co_await ask(patient, "company/0", std::move(join));
  if (!joined) co_return ports_.left(joined.error());
  for (const HostedRole& role : hosted) {
    const auto& kept = joined->kept;
    if (std::find(kept.begin(), kept.end(), role.name) != kept.end()) {
      ports_.announce(role.name);
    } else {
      co_await ports_.roles->stop(role.name, role.epoch);
    }
  }
  ports_.in(*joined);
  if (ports_.log != nullptr) context_.scope->spawn("log", send_log());
  // One at a time: a node that does not hear the company is not there for it, and falls silent.
  const RoleContext context = context_.with_deadline(cluster::limits::kLinkAnswer_max);
  for (std::uint64_t count = 1;; ++count) {
    co_await async::sleep_for(*context_.timers, actors::limits::kBeatEvery);
    Beat beat;
    beat.node = self_.name;
    beat.count = count;
    beat.memory = ports_.memory();
    beat.reports = ports_.roles->reports();
    auto asked = ask(context, "company/0", std::move(beat));
    auto heard = co_await std::move(asked);
    if (heard) {
      ports_.heard();
      continue;
    }
    // A company that only answers slowly is not lost.
    if (heard.error().code == core::ErrorCode::kDeadline ||
        heard.error().code == core::ErrorCode::kOverloaded) {
      continue;
    }
    co_return ports_.left(heard.error());
  }
}

// One message at a time, and not many a second: the link is there for other things. Lines that have
// not arrived are sent again, to the next head if need be.
async::task<void> NodeRole::send_log() {
  const RoleContext context = context_.with_deadline(cluster::limits::kLinkAnswer_max);
  for (;;) {
    co_await async::sleep_for(*context_.timers, limits::kLogEvery_node);
    LogBacklog::Batch batch = ports_.log->next();
    if (batch.lines.empty()) continue;
    const std::uint64_t after = batch.first + batch.lines.size();
    PutLog request;
    request.node = self_.name;
    request.first = batch.first;
    request.lines = std::move(batch.lines);
    request.dropped = batch.dropped;
    auto asked = ask(context, "company/0", std::move(request));
    auto answer = co_await std::move(asked);
    if (answer) {
      ports_.log->arrived(after);
    } else if (is_loss(answer.error().code)) {
      co_return;  // `attend` finds out, too
    }
  }
}

async::task<core::Result<Ack>> NodeRole::on(Spawn request) {
  TROUPE_CO_TRY(co_await ports_.roles->start(std::move(request)));
  co_return Ack{};
}

async::task<core::Result<Ack>> NodeRole::on(StopRole request) {
  co_await ports_.roles->stop(std::move(request.name), request.epoch);
  co_return Ack{};
}

}  // namespace troupe::actors::node
