#include "apps/session/node/node_process.hpp"

#include "actors/company/limits.hpp"
#include "actors/company/pass.hpp"
#include "actors/controller/limits.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "apps/cli/build_facts.hpp"
#include "apps/cli/stop_signal.hpp"
#include "apps/cli/system_facts.hpp"
#include "apps/session/node/meet_calls.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/cluster/limits.hpp"
#include "runtime/core/host_name.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/weights/push_protocol.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace troupe::session {
namespace {

// What becomes of the node's place in its company. The main thread waits here for news.
class Standing {
 public:
  // A new life begins, with another company: what ended the last one is forgotten.
  void begin() {
    const std::lock_guard lock(mutex_);
    left_.reset();
    in_ = false;
    heard_ = clock_.now();
  }
  void left(const core::Error& error) {
    const std::lock_guard lock(mutex_);
    if (!left_) left_ = error;
    changed_.notify_all();
  }
  void dismissed() {
    const std::lock_guard lock(mutex_);
    dismissed_ = true;
    changed_.notify_all();
  }
  void in(core::Duration head_wait, const std::string& run) {
    const std::lock_guard lock(mutex_);
    in_ = true;
    heard_ = clock_.now();
    head_wait_ = head_wait;
    run_ = run;
    changed_.notify_all();
  }
  // The run's folder, as its head has called it.
  std::string run() const {
    const std::lock_guard lock(mutex_);
    return run_;
  }
  void heard() {
    const std::lock_guard lock(mutex_);
    heard_ = clock_.now();
  }

  // Blocks. True once the node is admitted; false when it ended before.
  bool wait_until_in() {
    std::unique_lock lock(mutex_);
    while (!in_ && !over())
      changed_.wait_for(lock, actors::controller::limits::kLookEvery);
    return in_ && !left_;
  }
  // Blocks for kLookEvery at most; the end, once there is one.
  std::optional<NodeEnd> look() {
    std::unique_lock lock(mutex_);
    if (!over()) changed_.wait_for(lock, actors::controller::limits::kLookEvery);
    if (!over()) return std::nullopt;
    return end_here();
  }
  NodeEnd end() const {
    const std::lock_guard lock(mutex_);
    return end_here();
  }
  // Why the company was lost.
  core::Error cause() const {
    const std::lock_guard lock(mutex_);
    return left_.value_or(core::Error{});
  }
  core::Duration silence() const {
    const std::lock_guard lock(mutex_);
    return clock_.now() - heard_;
  }
  // Whether the company was heard recently enough to wait for its next head.
  bool may_wait() const { return silence() < head_wait(); }

 private:
  bool over() const { return left_ || dismissed_ || cli::stop_requested(); }
  NodeEnd end_here() const {
    if (dismissed_) return NodeEnd::kDismissed;
    return left_ ? NodeEnd::kLost : NodeEnd::kStopped;
  }
  core::Duration head_wait() const {
    const std::lock_guard lock(mutex_);
    return head_wait_;
  }

  const core::SteadyClock clock_{};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<core::Error> left_;
  core::TimePoint heard_{};
  core::Duration head_wait_{0};
  std::string run_;
  bool dismissed_ = false, in_ = false;
};

actors::Join join_of(const NodeSelf& self) {
  actors::Join join;
  join.name = self.name;
  join.host = core::host_name("?");
  join.host_id = weights::own_host_id();
  join.pid = static_cast<std::uint32_t>(::getpid());
  join.cores = static_cast<std::uint32_t>(cli::usable_cores());
  join.arithmetic = self.arithmetic.empty() ? cli::processor_arithmetic() : self.arithmetic;
  join.build = self.build.empty() ? cli::build_version() : self.build;
  join.roles = self.kinds;
  join.run_id = self.run_id;
  join.run = self.run;
  return join;
}

// True when the next head may take the node in, although this one has not.
bool is_passing(core::ErrorCode code) {
  return code == core::ErrorCode::kPeerLost || code == core::ErrorCode::kDeadline ||
         code == core::ErrorCode::kClosed || code == core::ErrorCode::kOverloaded;
}

class NodeProcess {
 public:
  NodeProcess(const NodeSelf& self, const NodeCalls& calls)
      : self_(self),
        calls_(calls),
        own_io_(1),
        role_io_(1),
        strand_(own_io_.make_strand()),
        meet_calls_(strand_) {}

  core::Result<NodeEnd> live(Entrance entrance) {
    if (calls_.maker) maker_ = calls_.maker(meet_calls_.asking());
    TROUPE_TRY(open_exchange());
    hosted_ = std::make_unique<actors::node::HostedRoles>(strand_, timers_, hosted_ports());
    auto lived = live_on(std::move(entrance));
    if (was_in_ && node_ && calls_.before_end) calls_.before_end(guest());
    own_io_.run(hosted_->stop_all());
    own_io_.run(stop());
    if (auto closed = exchange_->close(cluster::limits::kShutdownDeadline); !closed) {
      calls_.note(closed.error().message);
    }
    own_io_.join();
    maker_.reset();
    role_io_.join();
    if (tunnel_) tunnel_->stop();
    return lived;
  }

 private:
  core::Result<void> open_exchange() {
    cluster::Exchange::Hooks hooks;
    hooks.lost = [this](const cluster::PeerName& name, std::uint64_t epoch,
                        const core::Error& cause) {
      const bool ours = linked_ && core::generation_of(epoch) >= core::generation_of(epoch_);
      if (name == "company/0" && ours) standing_.left(cause);
    };
    hooks.refused = calls_.note;
    TROUPE_TRY_SET(exchange_, cluster::Exchange::create(std::move(hooks), timers_));
    return {};
  }

  // One company after the other, until the node ends.
  core::Result<NodeEnd> live_on(Entrance entrance) {
    for (;;) {
      auto end = live_once(std::move(entrance));
      const bool lost = end ? *end == NodeEnd::kLost : was_in_ && is_passing(end.error().code);
      if (!lost || !calls_.find_again) return end;
      calls_.note("the head is gone: " + (end ? standing_.cause() : end.error()).message +
                  "; waiting for the next" + calls_.patience);
      auto next = await_head();
      if (!next) return next.failure();
      if (!*next) return standing_.end();
      entrance = std::move(**next);
    }
  }

  // Joins one company and stays until the node ends or the company's head is gone.
  core::Result<NodeEnd> live_once(Entrance entrance) {
    TROUPE_TRY_ASSIGN(facts, actors::company::facts_of_pass(entrance.pass));
    epoch_ = facts.number;
    run_ = facts.run;
    standing_.begin();
    own_io_.run(stop());
    linked_ = false;
    exchange_->part_from("company/0");
    if (const auto old = std::exchange(tunnel_, entrance.tunnel)) old->stop();
    TROUPE_TRY(own_io_.run(start()));
    const wire::Hello hello{self_.name, core::RunId{0}, epoch_, entrance.pass};
    TROUPE_TRY(exchange_->connect(entrance.socket, hello, cluster::limits::kLinkAnswer_max));
    linked_ = true;  // a loss before this is one of the last company's, or the join fails
    own_io_.run(attend());
    if (!standing_.wait_until_in()) {
      const NodeEnd end = standing_.end();
      if (end == NodeEnd::kLost) return core::fail(standing_.cause());
      return end;
    }
    was_in_ = true;
    if (calls_.once_in) {
      TROUPE_TRY_ASSIGN(stays, calls_.once_in(guest()));
      if (!stays) return NodeEnd::kDismissed;
    }
    return stay();
  }

  // A head that is only silent may come back: the link is kept until there is a newer one.
  NodeEnd stay() {
    for (;;) {
      if (const auto end = standing_.look()) return *end;
      look_at_device();
      if (!calls_.find_again || standing_.silence() < actors::company::limits::kFrozenAfter)
        continue;
      if (!standing_.may_wait()) {
        standing_.left({core::ErrorCode::kPeerLost, "the head has been silent for too long"});
      } else if (auto found = find_newer(1)) {
        next_ = std::move(found);
        standing_.left({core::ErrorCode::kPeerLost, "a newer head is there"});
      } else if (other_run_) {
        standing_.left({core::ErrorCode::kPeerLost, "another run is there"});
      }
    }
  }

  void look_at_device() const {
    const std::string why = maker_ && calls_.end_now ? maker_->wedged() : "";
    if (why.empty()) return;
    calls_.note(why + "; it is wedged, and this process ends");
    calls_.end_now();
  }

  // The company, if its head is at least `by` generations newer than the last. Through a gateway
  // another run may have come to the address; on this host the folder is the same run's, or of one
  // that began anew in it.
  std::optional<Entrance> find_newer(std::uint64_t by) {
    auto found = calls_.find_again();
    if (!found) return std::nullopt;
    const auto facts = actors::company::facts_of_pass(found->pass);
    other_run_ = facts && facts->run != run_ && found->tunnel != nullptr;
    const bool fits = facts && !other_run_ && facts->number != epoch_ &&
                      core::generation_of(facts->number) >= core::generation_of(epoch_) + by;
    if (fits) return std::move(*found);
    if (found->tunnel) found->tunnel->stop();
    return std::nullopt;
  }

  // The next head; nothing when none came in time, or the node was asked to stop.
  core::Result<std::optional<Entrance>> await_head() {
    own_io_.run(hosted_->settle());
    if (next_) return std::exchange(next_, std::nullopt);
    while (standing_.may_wait() && calls_.may_wait() && !other_run_ && !cli::stop_requested()) {
      if (auto found = find_newer(0)) return found;
      std::this_thread::sleep_for(actors::controller::limits::kLookEvery);
    }
    return std::optional<Entrance>();
  }

  NodeGuest guest() {
    NodeGuest guest;
    guest.exchange = exchange_.get();
    guest.io = &role_io_;
    guest.run_id = run_.value;
    guest.run_folder = standing_.run();
    guest.epoch = epoch_;
    guest.context = context_;
    guest.own_io = &own_io_;
    return guest;
  }

  async::task<core::Result<void>> start() {
    for (const actors::HostedRole& role : hosted_->list())
      exchange_->keep_back(role.name);
    const cluster::Identity identity{self_.name, core::RunId{0}, epoch_};
    auto place = exchange_->join(identity, strand_);
    cluster::RoleHost::Hooks hooks;
    hooks.failed = [this](const cluster::PeerName&, const core::Error& error) {
      standing_.left(error);
    };
    hooks.shutdown_asked = [this](const cluster::PeerName&) { standing_.dismissed(); };
    cluster::RoleRecipe recipe;
    recipe.factory =
        actors::factory_of<actors::node::NodeRole>([this](actors::RoleContext context) {
          context_ = context;
          meet_calls_.enable(context);
          node_ =
              std::make_shared<actors::node::NodeRole>(std::move(context), join_of(self_), ports());
          return node_;
        });
    TROUPE_CO_TRY_SET(
        host_, co_await cluster::host_role(std::move(place), std::move(recipe), std::move(hooks)));
    co_return core::Result<void>();
  }

  actors::node::HostedRoles::Ports hosted_ports() {
    actors::node::HostedRoles::Ports ports;
    ports.place = [this](cluster::Identity identity) {
      return exchange_->join(std::move(identity), role_io_.make_strand());
    };
    ports.maker = maker_.get();
    ports.note = calls_.note;
    return ports;
  }

  actors::node::NodePorts ports() {
    actors::node::NodePorts ports;
    ports.roles = hosted_.get();
    ports.announce = [this](const std::string& role) { exchange_->announce(role); };
    ports.left = [this](const core::Error& error) { standing_.left(error); };
    ports.in = [this](const actors::Joined& joined) {
      standing_.in(std::chrono::milliseconds(joined.head_wait_ms), joined.run);
    };
    ports.heard = [this] { standing_.heard(); };
    ports.memory = &cli::resident_bytes;
    ports.log = calls_.log.get();
    return ports;
  }

  async::task<void> attend() {
    node_->begin();
    co_return;
  }

  // Stops the node's own role; those that it hosts stay.
  async::task<void> stop() {
    meet_calls_.disable();
    if (host_) co_await host_->stop();
    node_.reset();
    host_.reset();
  }

  const NodeSelf& self_;
  const NodeCalls& calls_;
  std::atomic<std::uint64_t> epoch_ = 0;  // assigned by the company
  core::RunId run_;                       // of the company
  bool other_run_ = false;                // is where this node's company was
  std::atomic<bool> linked_ = false;
  async::SteadyTimers timers_;
  async::IoThreads own_io_;  // of the node's role, so that no other role delays a heartbeat
  async::IoThreads role_io_;
  const async::Executor strand_;  // of the node's role and of the hosted roles' keeper
  MeetCalls meet_calls_;
  Standing standing_;
  bool was_in_ = false;
  std::shared_ptr<net::Tunnel> tunnel_;
  std::optional<Entrance> next_;  // of a newer head, found while the last was silent
  std::unique_ptr<actors::node::RoleMaker> maker_;
  std::unique_ptr<cluster::Exchange> exchange_;
  std::unique_ptr<actors::node::HostedRoles> hosted_;
  std::shared_ptr<actors::node::NodeRole> node_;
  actors::RoleContext context_;  // of the node's role
  std::unique_ptr<cluster::RoleHost> host_;
};

}  // namespace

core::Result<std::unique_ptr<cluster::RoleHost>> NodeGuest::host(std::string name,
                                                                 cluster::RoleHost::Factory factory,
                                                                 async::DeviceQueue* device) const {
  const cluster::Identity identity{name, core::RunId{run_id}, epoch};
  auto place = exchange->join(identity, io->make_strand());
  TROUPE_TRY_ASSIGN(
      role, io->run(cluster::host_role(std::move(place), {std::move(factory), device}, {})));
  if (auto taken = be_taken_in(name); !taken) {
    stop(role);
    return taken.failure();
  }
  return role;
}

// The head may not have noticed yet that the process that had this name before has ended. A lost
// node is given up within half of this time.
core::Result<void> NodeGuest::be_taken_in(const std::string& name) const {
  const core::SteadyClock clock;
  const core::TimePoint end = clock.now() + 2 * actors::company::limits::kFrozenAfter;
  core::Duration pause = actors::controller::limits::kLookEvery;
  for (;; pause = std::min<core::Duration>(2 * pause, actors::company::limits::kSuspectAfter)) {
    auto taken = exchange->present(name, "company/0", cluster::limits::kLinkAnswer_max);
    const bool held = !taken && taken.error().code == core::ErrorCode::kInvalidArgument;
    if (!held || clock.now() > end || cli::stop_requested()) return taken;
    std::this_thread::sleep_for(pause);
  }
}

void NodeGuest::stop(std::unique_ptr<cluster::RoleHost>& role) const {
  if (role) io->run(role->stop());
  role.reset();
}

core::Result<Entrance> enter_company(async::IoThreads& io, const JoinTarget& target) {
  TROUPE_TRY_ASSIGN(tunnel, enter(io, target, "company"));
  Entrance entrance;
  entrance.socket = tunnel->path();
  entrance.pass = tunnel->pass();
  entrance.tunnel = std::move(tunnel);
  return entrance;
}

core::Result<NodeEnd> live_as_node(const NodeSelf& self,
                                   Entrance entrance,
                                   const NodeCalls& calls) {
  NodeProcess process(self, calls);
  return process.live(std::move(entrance));
}

core::Result<NodeEnd> live_through_gateway(async::IoThreads& io,
                                           const JoinTarget& target,
                                           NodeSelf self,
                                           const NodeCalls& calls) {
  TROUPE_TRY_ASSIGN(entrance, enter_company(io, target));
  return live_as_node(self, std::move(entrance), calls);
}

}  // namespace troupe::session
