#include "apps/session/node/node_process.hpp"

#include "actors/company/pass.hpp"
#include "actors/limits.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "apps/cli/build_facts.hpp"
#include "apps/cli/stop_signal.hpp"
#include "apps/cli/system_facts.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/cluster/limits.hpp"
#include "runtime/weights/push_protocol.hpp"

#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace troupe::app {
namespace {

// Records that the node was admitted and how it ended; the main thread waits for both here.
class Ending {
 public:
  void left(const core::Error& error) {
    const std::lock_guard lock(mutex_);
    if (!left_) left_ = error;
    changed_.notify_all();
  }
  void dismissed() { set(dismissed_); }
  void in() { set(in_); }
  // Blocks. True once the node is admitted; false when it ended before.
  bool wait_until_in() {
    std::unique_lock lock(mutex_);
    while (!in_ && !over())
      changed_.wait_for(lock, actors::limits::kLookEvery);
    return in_ && !left_;
  }
  NodeEnd wait() {
    std::unique_lock lock(mutex_);
    while (!over())
      changed_.wait_for(lock, actors::limits::kLookEvery);
    if (dismissed_) return NodeEnd::kDismissed;
    return left_ ? NodeEnd::kLost : NodeEnd::kStopped;
  }
  std::optional<core::Error> cause() const {
    const std::lock_guard lock(mutex_);
    return left_;
  }

 private:
  void set(bool& what) {
    const std::lock_guard lock(mutex_);
    what = true;
    changed_.notify_all();
  }
  bool over() const { return left_ || dismissed_ || stop_requested(); }
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<core::Error> left_;
  bool dismissed_ = false, in_ = false;
};

actors::Join join_of(const NodeSelf& self) {
  char host[256] = "?";
  ::gethostname(host, sizeof host - 1);
  actors::Join join;
  join.name = self.name;
  join.host = host;
  join.host_id = weights::own_host_id();
  join.pid = static_cast<std::uint32_t>(::getpid());
  join.cores = static_cast<std::uint32_t>(usable_cores());
  join.arithmetic = self.arithmetic.empty() ? kArithmetic : self.arithmetic;
  join.build = self.build.empty() ? build_version() : self.build;
  join.roles = self.kinds;
  return join;
}

class NodeProcess {
 public:
  NodeProcess(const NodeSelf& self, const NodeCalls& calls)
      : self_(self), calls_(calls), own_io_(1), role_io_(1) {}

  core::Result<NodeEnd> live() {
    TROUPE_TRY_ASSIGN(number, actors::number_of_pass(self_.pass));
    epoch_ = number;
    if (calls_.maker) maker_ = calls_.maker();
    TROUPE_TRY(open_exchange());
    auto lived = live_inside();
    own_io_.run(stop());
    if (auto closed = exchange_->close(cluster::limits::kShutdownDeadline); !closed) {
      calls_.note(closed.error().message);
    }
    own_io_.join();
    maker_.reset();
    role_io_.join();
    return lived;
  }

 private:
  core::Result<void> open_exchange() {
    cluster::Exchange::Hooks hooks;
    hooks.lost = [this](const cluster::PeerName& name, std::uint64_t, const core::Error& cause) {
      if (name == "company/0") ending_.left(cause);
    };
    hooks.refused = calls_.note;
    TROUPE_TRY_SET(exchange_, cluster::Exchange::create(std::move(hooks), timers_));
    return {};
  }

  core::Result<NodeEnd> live_inside() {
    TROUPE_TRY(own_io_.run(start()));
    const wire::Hello hello{self_.name, core::RunId{0}, epoch_, self_.pass};
    TROUPE_TRY(exchange_->connect(self_.socket, hello, cluster::limits::kLinkSilence_max));
    own_io_.run(attend());
    if (!ending_.wait_until_in()) {
      if (const auto cause = ending_.cause()) return core::fail(*cause);
      return ending_.wait();
    }
    if (calls_.once_in) {
      auto stays = calls_.once_in(guest());
      if (!stays || !*stays) {
        if (calls_.before_end) calls_.before_end(guest());
        if (!stays) return stays.failure();
        return NodeEnd::kDismissed;
      }
    }
    const NodeEnd end = ending_.wait();
    if (calls_.before_end) calls_.before_end(guest());
    return end;
  }

  NodeGuest guest() {
    NodeGuest guest;
    guest.exchange = exchange_.get();
    guest.io = &role_io_;
    guest.run_id = node_->run_id();
    guest.epoch = epoch_;
    guest.context = context_;
    guest.own_io = &own_io_;
    return guest;
  }

  async::task<core::Result<void>> start() {
    const cluster::Identity identity{self_.name, core::RunId{0}, epoch_};
    auto place = exchange_->join(identity, own_io_.make_strand());
    cluster::RoleHost::Hooks hooks;
    hooks.failed = [this](const cluster::PeerName&, const core::Error& error) {
      ending_.left(error);
    };
    hooks.shutdown_asked = [this](const cluster::PeerName&) { ending_.dismissed(); };
    cluster::RoleRecipe recipe;
    recipe.factory = actors::factory_of<actors::NodeRole>([this](actors::RoleContext context) {
      context_ = context;
      node_ = std::make_shared<actors::NodeRole>(std::move(context), join_of(self_), ports());
      return node_;
    });
    TROUPE_CO_TRY_SET(
        host_, co_await cluster::host_role(std::move(place), std::move(recipe), std::move(hooks)));
    co_return core::Result<void>();
  }

  actors::NodePorts ports() {
    actors::NodePorts ports;
    ports.place = [this](cluster::Identity identity) {
      return exchange_->join(std::move(identity), role_io_.make_strand());
    };
    ports.maker = maker_.get();
    ports.left = [this](const core::Error& error) { ending_.left(error); };
    ports.in = [this] { ending_.in(); };
    ports.note = calls_.note;
    return ports;
  }

  async::task<void> attend() {
    node_->begin();
    co_return;
  }

  async::task<void> stop() {
    if (node_) co_await node_->stop_roles();
    if (host_) co_await host_->stop();
    node_.reset();
    host_.reset();
  }

  const NodeSelf& self_;
  const NodeCalls& calls_;
  std::uint64_t epoch_ = 0;  // assigned by the company
  async::SteadyTimers timers_;
  async::IoThreads own_io_;  // of the node's role, so that no other role delays a heartbeat
  async::IoThreads role_io_;
  Ending ending_;
  std::unique_ptr<actors::RoleMaker> maker_;
  std::unique_ptr<cluster::Exchange> exchange_;
  std::shared_ptr<actors::NodeRole> node_;
  actors::RoleContext context_;  // of the node's role
  std::unique_ptr<cluster::RoleHost> host_;
};

}  // namespace

core::Result<std::unique_ptr<cluster::RoleHost>> NodeGuest::host(std::string name,
                                                                 cluster::RoleHost::Factory factory,
                                                                 async::DeviceQueue* device) const {
  const cluster::Identity identity{std::move(name), core::RunId{run_id}, epoch};
  auto place = exchange->join(identity, io->make_strand());
  return io->run(cluster::host_role(std::move(place), {std::move(factory), device}, {}));
}

void NodeGuest::stop(std::unique_ptr<cluster::RoleHost>& role) const {
  if (role) io->run(role->stop());
  role.reset();
}

core::Result<NodeEnd> live_as_node(const NodeSelf& self, const NodeCalls& calls) {
  NodeProcess process(self, calls);
  return process.live();
}

core::Result<NodeEnd> live_through_gateway(async::IoThreads& io,
                                           const JoinTarget& target,
                                           NodeSelf self,
                                           const NodeCalls& calls) {
  TROUPE_TRY_ASSIGN(tunnel, enter(io, target, "company"));
  self.socket = tunnel->path();
  self.pass = tunnel->pass();
  auto end = live_as_node(self, calls);
  tunnel->stop();
  return end;
}

}  // namespace troupe::app
