#include "actors/node/node_role.hpp"

#include "actors/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/cluster/limits.hpp"

#include <algorithm>

namespace troupe::actors {

NodeRole::NodeRole(RoleContext context, Join self, NodePorts ports)
    : context_(std::move(context)), self_(std::move(self)), ports_(std::move(ports)) {}

void NodeRole::begin() {
  async::post(context_.scope->executor(),
              [this] { context_.scope->spawn("signs of life", attend()); });
}

async::task<void> NodeRole::attend() {
  const RoleContext patient = context_.with_deadline(limits::kNodeStart);
  Join join = self_;
  join.hosted = ports_.roles->list();
  join.config = ports_.roles->config();
  const auto hosted = join.hosted;
  auto joined = co_await ask(patient, "company/0", std::move(join));
  if (!joined) co_return ports_.left(joined.error());
  run_id_ = joined->run_id;
  for (const HostedRole& role : hosted) {
    const auto& kept = joined->kept;
    if (std::find(kept.begin(), kept.end(), role.name) != kept.end()) {
      ports_.announce(role.name);
    } else {
      co_await ports_.roles->stop(role.name, role.epoch);
    }
  }
  ports_.in(*joined);
  // One at a time: a node that does not hear the company is not there for it, and falls silent.
  const RoleContext context = context_.with_deadline(cluster::limits::kLinkAnswer_max);
  for (std::uint64_t count = 1;; ++count) {
    co_await async::sleep_for(*context_.timers, limits::kBeatEvery);
    const Beat beat{self_.name, count};
    auto heard = co_await ask(context, "company/0", beat);
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

async::task<core::Result<Ack>> NodeRole::on(Spawn request) {
  TROUPE_CO_TRY(co_await ports_.roles->start(std::move(request)));
  co_return Ack{};
}

async::task<core::Result<Ack>> NodeRole::on(StopRole request) {
  co_await ports_.roles->stop(std::move(request.name), request.epoch);
  co_return Ack{};
}

}  // namespace troupe::actors
