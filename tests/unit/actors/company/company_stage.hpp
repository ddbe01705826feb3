// A company and its local nodes on virtual time, over the simulated network: processes that start
// at random moments, crash, freeze, thaw and are cut off. Everything on one thread, from one seed.
#pragma once

#include "actors/company/company.hpp"
#include "actors/node/node_role.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "runtime/async/run_on.hpp"
#include "tests/sim/sim_network.hpp"
#include "tests/unit/actors/company/slow_maker.hpp"
#include "tests/unit/runtime/cluster/support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace troupe::actors::testing {

using std::chrono::milliseconds;

class CompanyStage final : public company::NodeLauncher, public company::CompanyPort {
 public:
  CompanyStage(std::uint64_t seed,
               std::vector<company::LocalNode> nodes,
               std::vector<company::WantedRole> roles,
               bool episodes = false)
      : rng_(seed), network_(time_, seed + 1, {}) {
    company::CompanyOptions options;
    options.run_id = 42;
    options.run = "runs/here";
    options.arithmetic = options.build = "same";
    options.local_nodes = std::move(nodes);
    options.roles = std::move(roles);
    options.episodes = episodes;
    auto joined = network_.join({"company/0", core::RunId{0}, 1});
    EXPECT_TRUE(joined);
    strand_ = (*joined)->strand();
    host_ = std::make_unique<cluster::RoleHost>(*joined, cluster::RoleHost::Hooks{});
    auto factory = factory_of<company::Company>([this, options](RoleContext context) {
      company_ =
          std::make_shared<company::Company>(std::move(context), options, admission_, *this, *this);
      return company_;
    });
    Now started(strand_, host_->start(std::move(factory)));
    run_for(milliseconds(1));
    EXPECT_TRUE(started.done() && started.value());
    async::post(strand_, [this] { company_->begin(); });
  }

  ~CompanyStage() override {
    over_ = true;
    for (auto& life : lives_)
      crash(*life);
    Done stopped(strand_, stop(host_.get()));
    run_for(std::chrono::seconds(700));
    EXPECT_TRUE(stopped.done());
    for (const auto& life : lives_)
      EXPECT_TRUE(life->stopped && life->stopped->done()) << life->name;
  }

  void run_for(core::Duration span) { EXPECT_TRUE(time_.run_for(span, 50'000'000)); }
  core::Rng& rng() { return rng_; }
  const company::Company& company() const { return *company_; }
  const std::vector<std::string>& notes() const { return notes_; }

  // ---- faults; nothing happens to a node that does not run
  void crash(const std::string& node) {
    if (Life* const life = running(node)) crash(*life);
  }
  // Ends one role's actor, not its process.
  void crash_role(const std::string& role) {
    const auto found = places_.find(role);
    if (found == places_.end() || found->second.life->crashed) return;
    network_.crash(role);
    tell_lost(role, found->second.epoch);
  }
  void freeze(const std::string& node) { network_.freeze(node); }
  void thaw(const std::string& node) { network_.thaw(node); }
  void cut(const std::string& node) { network_.cut(node, "company/0"); }
  void heal() { network_.heal(); }

  // A node that nobody here started comes in.
  void guest(const std::string& node,
             const std::vector<std::string>& kinds,
             std::uint32_t pid = 0) {
    time_.schedule(time_.now(), [this, node, kinds, pid] { begin_life(node, kinds, pid); });
  }
  // The answer to who asks to come in.
  cluster::testing::Later<core::Result<Joined>> asks_in(Join join) {
    return {strand_, company_->on(std::move(join))};
  }
  // Somebody wants the node to leave; the answer is there once it has. Its generators need `work`
  // to finish.
  cluster::testing::Later<core::Result<Ack>> drain(const std::string& node,
                                                   core::Duration work = {},
                                                   std::uint32_t wait_ms = 60'000) {
    work_ = work;
    return {strand_, company_->on(DrainNode{node, wait_ms})};
  }
  const std::vector<std::string>& drained() const { return drained_; }  // as the run is told
  bool is_here(const std::string& node) { return running(node) != nullptr; }

  // A node's process prints something.
  void print(const std::string& node, const std::string& text) { running(node)->log.put(text); }
  // What came of it, with the numbers of the lines.
  using Lines = std::vector<std::pair<std::uint64_t, std::string>>;
  const Lines& printed() const { return printed_; }
  Refusals& refusals() { return refusals_; }
  const std::vector<Met>& met() const { return met_; }
  std::size_t asked(const std::string& what) const {
    return static_cast<std::size_t>(
        std::count(refusals_.asked.begin(), refusals_.asked.end(), what));
  }
  // Somebody says that this life of a role is sick.
  void report_sick(const std::string& role, std::uint64_t epoch) {
    async::post(strand_, [this, role, epoch] {
      company_->restart(role, epoch, {core::ErrorCode::kResources, "a device failed"});
    });
  }
  const std::vector<std::string>& lost() const { return lost_; }      // roles, as the run is told
  const std::vector<std::string>& fenced() const { return fenced_; }  // "reward/0 1"

  // Processes end at once from now on.
  void doom() { doomed_ = true; }
  // The run may end with an error.
  void may_end() { may_end_ = true; }
  const std::string& hopeless() const { return hopeless_; }
  // Asks on the company's strand; the answer is there once time has passed.
  cluster::testing::Later<core::Result<void>> await_up(std::vector<std::string> kinds) {
    const auto deadline = async::Deadline::after(time_, std::chrono::hours(1));
    return {strand_, company_->await_up(std::move(kinds), deadline)};
  }

  // ---- what must hold
  // Where the role stands now: its node and epoch; "" when nowhere.
  std::pair<std::string, std::uint64_t> place_of(const std::string& role) const {
    const auto found = places_.find(role);
    if (found == places_.end() || found->second.life->crashed) return {"", 0};
    return {found->second.life->name, found->second.epoch};
  }

 private:
  using Now = cluster::testing::Later<core::Result<void>>;
  struct Nothing {};
  using Done = cluster::testing::Later<Nothing>;

  struct Life {
    Life(std::string called, CompanyStage& stage)
        : name(std::move(called)),
          maker(stage.time_, stage.rng_, name, stage.refusals_, stage.met_) {}
    std::string name;
    SlowMaker maker;
    node::LogBacklog log;
    std::uint64_t epoch = 0;
    bool crashed = false;
    std::unique_ptr<node::HostedRoles> roles;
    std::shared_ptr<node::NodeRole> role;
    std::unique_ptr<cluster::RoleHost> host;
    async::Executor strand;
    std::unique_ptr<Now> started;
    std::unique_ptr<Done> stopped;
  };
  struct Place {
    Life* life = nullptr;
    std::uint64_t epoch = 0;
  };

  static async::task<Nothing> stop(cluster::RoleHost* host) {
    co_await host->stop();
    co_return Nothing{};
  }
  static async::task<Nothing> stop_node(Life* life) {
    co_await life->roles->stop_all();
    co_await life->host->stop();
    co_return Nothing{};
  }

  // ---- CompanyPort
  void role_up(const std::string&) override {}
  void role_lost(const std::string& role, const core::Error&) override { lost_.push_back(role); }
  void note(const std::string& text) override { notes_.push_back(text); }
  void hopeless(const core::Error& error) override {
    EXPECT_TRUE(doomed_ || may_end_) << error.message;
    hopeless_ = error.message;
  }
  void fence(const std::string& name, std::uint64_t epoch, const core::Error&) override {
    fenced_.push_back(name + " " + std::to_string(epoch));
  }
  void log(PutLog put, std::uint32_t) override {
    for (std::size_t i = 0; i < put.lines.size(); ++i)
      printed_.emplace_back(put.first + i, put.lines[i]);
  }
  std::vector<std::string> last_lines(const std::string&) override { return {"a", "b"}; }
  async::task<core::Result<Ack>> drain(DrainGenerator request) override {
    drained_.push_back(request.name);
    return finish(std::min<core::Duration>(work_, milliseconds(request.wait_ms)));
  }

  async::task<core::Result<Ack>> finish(core::Duration work) {
    co_await async::sleep_for(time_, work);
    co_return Ack{};
  }

  Life* running(const std::string& node) {
    for (auto& life : lives_) {
      if (life->name == node && !life->crashed) return life.get();
    }
    return nullptr;
  }

  // The process and all that is in it; the company hears of it late, by socket and by wait.
  void crash(Life& life, const std::string& how = "crashed") {
    if (std::exchange(life.crashed, true)) return;
    network_.thaw(life.name);
    network_.crash(life.name);
    tell_lost(life.name, life.epoch);
    for (const auto& [role, place] : places_) {
      if (place.life != &life) continue;
      network_.crash(role);
      tell_lost(role, place.epoch);
    }
    life.stopped = std::make_unique<Done>(life.strand, stop_node(&life));
    pending_exits_.push_back({time_.now() + milliseconds(rng_.next_below(150)), {life.name, how}});
  }

  void tell_lost(const std::string& name, std::uint64_t epoch) {
    time_.schedule(time_.now() + milliseconds(rng_.next_below(1200)), [this, name, epoch] {
      if (over_) return;
      async::post(strand_, [this, name, epoch] {
        company_->on_lost(name, epoch, {core::ErrorCode::kPeerLost, "its socket was closed"});
      });
    });
  }

  void introduce(const std::string& name,
                 std::uint64_t epoch,
                 const std::string& origin,
                 const std::string& arithmetic = "") {
    async::post(strand_, [this, name, epoch, origin, arithmetic] {
      const wire::Hello hello{name, core::RunId{42}, epoch, "", arithmetic};
      company_->on_arrived(hello, origin);
    });
  }

  node::HostedRoles::Ports hosted_ports(Life* life) {
    node::HostedRoles::Ports ports;
    ports.place =
        [this,
         life](cluster::Identity identity) -> core::Result<std::shared_ptr<cluster::Endpoint>> {
      const std::string role = identity.self;
      const std::uint64_t epoch = identity.epoch;
      const std::string arithmetic = identity.arithmetic;
      if (life->crashed) return core::fail(core::ErrorCode::kClosed, "crashed");
      TROUPE_TRY_ASSIGN(endpoint, network_.join(std::move(identity)));
      EXPECT_GT(epoch, places_[role].epoch) << role << " came back with an old epoch";
      places_[role] = {life, epoch};
      introduce(role, epoch, life->name, arithmetic);
      return endpoint;
    };
    ports.maker = &life->maker;
    ports.note = [](const std::string&) {};
    return ports;
  }
  node::NodePorts ports(Life* life) {
    node::NodePorts ports;
    ports.roles = life->roles.get();
    ports.left = [this, life](const core::Error&) {
      time_.schedule(time_.now(), [this, life] { crash(*life); });
    };
    ports.in = [](const Joined&) {};
    ports.memory = [] { return std::uint64_t{4096}; };
    ports.log = &life->log;
    return ports;
  }

  // ---- NodeLauncher
  core::Result<void> start(const std::string& node,
                           const std::vector<std::string>& kinds,
                           const std::string&) override {
    time_.schedule(time_.now() + milliseconds(20 + rng_.next_below(500)),
                   [this, node, kinds] { begin_life(node, kinds); });
    return {};
  }
  void begin_life(const std::string& node,
                  const std::vector<std::string>& kinds,
                  std::uint32_t pid = 0) {
    if (over_) return;
    if (doomed_) {
      pending_exits_.push_back({time_.now(), {node, "ended with status 1"}});
      return;
    }
    auto joined = network_.join({node, core::RunId{0}, ++epochs_});
    ASSERT_TRUE(joined) << joined.error().message;
    auto life = std::make_unique<Life>(node, *this);
    life->epoch = epochs_;
    life->strand = (*joined)->strand();
    cluster::RoleHost::Hooks hooks;
    hooks.shutdown_asked = [this, dismissed = life.get()](const cluster::PeerName&) {
      time_.schedule(time_.now(), [this, dismissed] { crash(*dismissed, "ended with status 0"); });
    };
    life->host = std::make_unique<cluster::RoleHost>(*joined, std::move(hooks));
    Life* const made = life.get();
    made->roles = std::make_unique<node::HostedRoles>(made->strand, time_, hosted_ports(made));
    Join self;
    self.name = node;
    self.host = "here";
    self.pid = pid;
    self.arithmetic = self.build = "same";
    self.roles = kinds;
    auto factory = factory_of<node::NodeRole>([this, made, self](RoleContext context) {
      made->maker.ask_with(context);
      made->role = std::make_shared<node::NodeRole>(std::move(context), self, ports(made));
      made->role->begin();
      return made->role;
    });
    lives_.push_back(std::move(life));
    introduce(node, made->epoch, node);
    made->started = std::make_unique<Now>(made->strand, made->host->start(std::move(factory)));
  }
  void kill(const std::string& node) override {
    time_.schedule(time_.now(), [this, node] { crash(node); });
  }
  std::vector<Exit> exits() override {
    std::vector<Exit> now;
    for (auto exit = pending_exits_.begin(); exit != pending_exits_.end();) {
      if (exit->first > time_.now()) {
        ++exit;
        continue;
      }
      now.push_back(exit->second);
      exit = pending_exits_.erase(exit);
    }
    return now;
  }

  cluster::sim::VirtualTime time_;
  core::Rng rng_;
  cluster::sim::SimNetwork network_;
  Refusals refusals_;
  std::vector<Met> met_;
  std::vector<std::string> lost_, fenced_;
  company::Admission admission_;
  async::Executor strand_;
  std::unique_ptr<cluster::RoleHost> host_;
  std::shared_ptr<company::Company> company_;
  std::list<std::unique_ptr<Life>> lives_;
  std::map<std::string, Place> places_;
  std::vector<std::pair<core::TimePoint, Exit>> pending_exits_;
  std::vector<std::string> notes_;
  std::uint64_t epochs_ = 0;
  core::Duration work_{};
  std::vector<std::string> drained_;
  Lines printed_;
  bool over_ = false;
  bool doomed_ = false, may_end_ = false;
  std::string hopeless_;
};

}  // namespace troupe::actors::testing
