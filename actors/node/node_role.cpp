#include "actors/node/node_role.hpp"

#include "actors/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/cluster/limits.hpp"
#include "runtime/core/at_exit.hpp"

namespace troupe::actors {

NodeRole::NodeRole(RoleContext context, Join self, NodePorts ports)
    : context_(std::move(context)),
      self_(std::move(self)),
      ports_(std::move(ports)),
      changed_(*context_.timers) {}

void NodeRole::begin() {
  async::post(context_.scope->executor(),
              [this] { context_.scope->spawn("signs of life", attend()); });
}

async::task<void> NodeRole::attend() {
  const RoleContext patient = context_.with_deadline(limits::kNodeStart);
  Join join = self_;
  auto joined = co_await ask(patient, "company/0", std::move(join));
  if (!joined) co_return ports_.left(joined.error());
  run_id_ = joined->run_id;
  ports_.in();
  const RoleContext context = context_.with_deadline(cluster::limits::kLinkSilence_max);
  for (std::uint64_t count = 1;; ++count) {
    co_await async::sleep_for(*context_.timers, limits::kBeatEvery);
    const Beat beat{self_.name, count};
    auto heard = co_await ask(context, "company/0", beat);
    if (heard) continue;
    // A company that only answers slowly is not lost.
    if (heard.error().code == core::ErrorCode::kDeadline ||
        heard.error().code == core::ErrorCode::kOverloaded) {
      continue;
    }
    co_return ports_.left(heard.error());
  }
}

// Marks a start or stop of a role as under way until the returned object is destroyed.
auto NodeRole::begin_change() {
  changing_ = true;
  return core::AtExit([this] {
    changing_ = false;
    changed_.notify_all();
  });
}

async::task<core::Result<Ack>> NodeRole::on(Spawn request) {
  while (changing_)
    co_await changed_.wait(async::Deadline::none());
  const std::string name = request.name;
  const auto there = hosts_.find(name);
  if (there != hosts_.end() && there->second->epoch() == request.epoch) co_return Ack{};
  const std::uint64_t newest = there != hosts_.end() ? there->second->epoch() : ended_[name];
  if (newest >= request.epoch) {
    co_return core::fail(core::ErrorCode::kInvalidArgument,
                         name + " of epoch " + std::to_string(newest) +
                             " was here; it is not started with epoch " +
                             std::to_string(request.epoch));
  }
  if (there != hosts_.end()) co_await remove(name);
  core::Result<void> started;
  {
    const auto change = begin_change();
    const cluster::Identity identity{name, core::RunId{request.run_id}, request.epoch};
    auto recipe = co_await ports_.maker->make(std::move(request));
    if (!recipe) {
      started = recipe.failure();
    } else {
      cluster::RoleHost::Hooks hooks;
      hooks.failed = [this, strand = context_.scope->executor()](const cluster::PeerName& who,
                                                                 const core::Error& error) {
        async::post(strand, [this, who, error] { failed(who, error); });
      };
      auto place = ports_.place(identity);
      auto host =
          co_await cluster::host_role(std::move(place), std::move(*recipe), std::move(hooks));
      if (host) hosts_[name] = std::move(*host);
      if (!host) started = host.failure();
    }
  }
  if (!started) co_return started.failure();
  ports_.note("started " + name);
  co_return Ack{};
}

async::task<core::Result<Ack>> NodeRole::on(StopRole request) {
  co_await remove(request.name, request.epoch);
  co_return Ack{};
}

// Stops a role that failed by itself. The company notices it, because the role's address ends, too.
void NodeRole::failed(const std::string& role, const core::Error& error) {
  ports_.note(role + " failed: " + error.message);
  context_.scope->spawn("stop " + role, remove(role));
}

async::task<void> NodeRole::remove(std::string role, std::uint64_t epoch) {
  while (changing_)
    co_await changed_.wait(async::Deadline::none());
  const auto found = hosts_.find(role);
  if (found == hosts_.end()) co_return;
  if (epoch != 0 && found->second->epoch() > epoch) co_return;
  const auto change = begin_change();
  ended_[role] = found->second->epoch();
  co_await found->second->stop();
  hosts_.erase(found);
}

async::task<void> NodeRole::stop_roles() {
  co_await async::run_on(context_.scope->executor(), stop_here());
}

async::task<void> NodeRole::stop_here() {
  for (;;) {
    while (changing_)
      co_await changed_.wait(async::Deadline::none());
    if (hosts_.empty()) co_return;
    co_await remove(hosts_.rbegin()->first);
  }
}

}  // namespace troupe::actors
