// Rewards that guests bring, over CAF, each guest with an exchange of its own: the name of one that
// was detached is free at once, and a loss that comes while one is attached is told.
#include "actors/company/company.hpp"
#include "actors/company/pass.hpp"
#include "actors/node/node_role.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/cluster/caf/exchange.hpp"
#include "tests/unit/actors/company/over_caf.hpp"
#include "tests/unit/actors/idle_role.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

namespace troupe::actors::company {
namespace {

using std::chrono::seconds;
using testing::Events;
using testing::NoProcesses;

constexpr core::RunId kGuestsRun{42};

class NoMaker final : public node::RoleMaker {
 public:
  async::task<core::Result<cluster::RoleRecipe>> make(Spawn) override {
    co_return core::fail(core::ErrorCode::kUnsupported, "a guest plays no role of the run");
  }
};

async::task<core::Result<void>> start_host_of(cluster::RoleHost* host,
                                              cluster::RoleHost::Factory factory) {
  co_return co_await host->start(std::move(factory));
}
async::task<void> stop_host_of(cluster::RoleHost* host) {
  co_await host->stop();
}
async::task<core::Result<RewardsChanged>> detach_there(std::shared_ptr<Company> company,
                                                       DetachReward request) {
  auto detached = company->on(std::move(request));
  co_return co_await std::move(detached);
}
async::task<CompanyView> view_there(std::shared_ptr<Company> company) {
  co_return company->view();
}

// The process of a reward, which does not end when it is told to.
class Guest {
 public:
  Guest(Events& events, std::string name, const std::string& socket, const std::string& pass)
      : io_(2), strand_(io_.make_strand()), roles_(strand_, timers_, hosted()) {
    cluster::Exchange::Hooks hooks;
    hooks.refused = [&events](const std::string& what) { events.add("guest: " + what); };
    exchange = std::move(cluster::Exchange::create(std::move(hooks), timers_)).value();
    const std::uint64_t epoch = facts_of_pass(pass)->number;
    cluster::RoleHost::Hooks told;
    told.shutdown_asked = [&events, name](const auto&) { events.add(name + " is told to end"); };
    node_ = std::make_unique<cluster::RoleHost>(
        exchange->join({name, core::RunId{0}, epoch}, strand_).value(), std::move(told));
    EXPECT_TRUE(io_.run(start_host_of(
        node_.get(), factory_of<node::NodeRole>([&](RoleContext context) {
          context_ = context;
          Join self;
          self.name = name;
          self.arithmetic = self.build = "same";
          self.roles = {"attach"};
          node::NodePorts ports;
          ports.roles = &roles_;
          ports.left = [](const core::Error&) {};
          ports.in = [&events, name](const Joined&) { events.add(name + " is in"); };
          role_ = std::make_shared<node::NodeRole>(std::move(context), self, std::move(ports));
          return role_;
        }))));
    EXPECT_TRUE(exchange->connect(socket, {name, core::RunId{0}, epoch, pass}, seconds(60)));
    role_->begin();
    EXPECT_TRUE(events.await(name + " is in"));
    auto place = exchange->join({"reward/x", kGuestsRun, epoch}, io_.make_strand());
    reward_ = std::make_unique<cluster::RoleHost>(place.value(), cluster::RoleHost::Hooks{});
    EXPECT_TRUE(io_.run(start_host_of(
        reward_.get(),
        [](const cluster::RoleServices&) -> core::Result<std::unique_ptr<cluster::Role>> {
          return std::unique_ptr<cluster::Role>(std::make_unique<testing::IdleRole>());
        })));
  }
  ~Guest() {
    io_.run(stop_host_of(reward_.get()));
    io_.run(stop_host_of(node_.get()));
    EXPECT_TRUE(exchange->close(seconds(60)));
    io_.join();
  }

  core::Result<void> present() { return exchange->present("reward/x", "company/0", seconds(60)); }
  core::Result<RewardsChanged> attach() {
    return io_.run(
        async::run_on(strand_, ask(context_, "company/0", AttachReward{"x", "reward/x"})));
  }

  std::unique_ptr<cluster::Exchange> exchange;

 private:
  node::HostedRoles::Ports hosted() {
    node::HostedRoles::Ports ports;
    ports.place = [](cluster::Identity) -> core::Result<std::shared_ptr<cluster::Endpoint>> {
      return core::fail(core::ErrorCode::kUnsupported, "a guest plays no role of the run");
    };
    ports.maker = &maker_;
    ports.note = [](const std::string&) {};
    return ports;
  }

  NoMaker maker_;
  async::SteadyTimers timers_;
  async::IoThreads io_;
  const async::Executor strand_;
  node::HostedRoles roles_;
  RoleContext context_;
  std::shared_ptr<node::NodeRole> role_;
  std::unique_ptr<cluster::RoleHost> node_, reward_;
};

// A company without roles of its own, whose run takes every reward in.
class CompanyRewards : public ::testing::Test, public CompanyPort {
 protected:
  CompanyRewards() : io_(1), strand_(io_.make_strand()), admission_(kGuestsRun) {
    cluster::Exchange::Hooks hooks;
    hooks.admit = [this](const wire::Hello& hello, const std::string& origin) {
      return admission_.admit(hello, origin);
    };
    hooks.arrived = [this](const wire::Hello& hello, const std::string& origin) {
      async::post(strand_, [this, hello, origin] { company_->on_arrived(hello, origin); });
    };
    hooks.lost = [this](const std::string& name, std::uint64_t epoch, const core::Error& cause) {
      async::post(strand_, [this, name, epoch, cause] { company_->on_lost(name, epoch, cause); });
    };
    hooks.refused = [this](const std::string& what) { events_.add("head: " + what); };
    head_ = std::move(cluster::Exchange::create(std::move(hooks), timers_)).value();
    CompanyOptions options;
    options.run_id = kGuestsRun.value;
    options.arithmetic = options.build = "same";
    auto place = head_->join({"company/0", core::RunId{0}, 1}, strand_);
    host_ = std::make_unique<cluster::RoleHost>(place.value(), cluster::RoleHost::Hooks{});
    EXPECT_TRUE(io_.run(start_host_of(host_.get(), factory_of<Company>([&](RoleContext context) {
                                        company_ =
                                            std::make_shared<Company>(std::move(context), options,
                                                                      admission_, launcher_, *this);
                                        return company_;
                                      }))));
    socket_ = head_->listen().value();
  }
  ~CompanyRewards() override {
    first_.reset();
    second_.reset();
    io_.run(stop_host_of(host_.get()));
    EXPECT_TRUE(head_->close(seconds(60)));
    io_.join();
  }

  // ---- CompanyPort
  void role_up(const std::string&) override {}
  void role_lost(const std::string& role, const core::Error&) override {
    events_.add(role + " is lost");
  }
  void note(const std::string& text) override {
    if (text.ends_with(" has left")) events_.add(text);
  }
  void hopeless(const core::Error& error) override { ADD_FAILURE() << error.message; }
  void fence(const std::string& name, std::uint64_t epoch, const core::Error& why) override {
    head_->forget(name, why, epoch);
  }
  async::task<core::Result<RewardsChanged>> attach(AttachReward request) override {
    events_.add(request.name + " is being attached");
    while (held_)
      co_await async::sleep_for(timers_, std::chrono::milliseconds(1));
    events_.add(request.name + " is attached");
    co_return RewardsChanged{};
  }
  async::task<core::Result<RewardsChanged>> detach(DetachReward request) override {
    events_.add(request.name + " is detached");
    co_return RewardsChanged{};
  }

  std::unique_ptr<Guest> guest(const std::string& name) {
    return std::make_unique<Guest>(events_, name, socket_, admission_.issue_pass());
  }
  core::Result<RewardsChanged> detach_x() {
    return io_.run(async::run_on(strand_, detach_there(company_, {"x"})));
  }

  Events events_;
  std::atomic<bool> held_{false};
  async::SteadyTimers timers_;
  async::IoThreads io_;
  const async::Executor strand_;
  Admission admission_;
  NoProcesses launcher_;
  std::unique_ptr<cluster::Exchange> head_;
  std::shared_ptr<Company> company_;
  std::unique_ptr<cluster::RoleHost> host_;
  std::string socket_;
  std::unique_ptr<Guest> first_, second_;
};

}  // namespace

// The last guest's process has been told to end and has not yet, nor has the head heard of its end.
TEST_F(CompanyRewards, ANameIsFreeOnceItsRewardIsDetached) {
  first_ = guest("node/first");
  ASSERT_TRUE(first_->present());
  ASSERT_TRUE(first_->attach());
  ASSERT_TRUE(detach_x());
  ASSERT_TRUE(events_.await("node/first is told to end"));
  second_ = guest("node/second");
  const auto taken = second_->present();
  EXPECT_TRUE(taken) << taken.error().message;
  EXPECT_TRUE(second_->attach());
  // Now it ends, which is no loss of the reward.
  first_.reset();
  ASSERT_TRUE(events_.await("node/first has left"));
  const auto view = io_.run(async::run_on(strand_, view_there(company_)));
  EXPECT_EQ(view.brought, (std::map<std::string, std::string>{{"reward/x", "node/second"}}));
  EXPECT_EQ(events_.all(),
            (std::vector<std::string>{
                "node/first is in", "x is being attached", "x is attached", "x is detached",
                "reward/x is lost", "node/first is told to end", "node/second is in",
                "x is being attached", "x is attached", "node/first has left"}));
}

// A name of a guest that lives is not given to the next one, whatever it asks for.
TEST_F(CompanyRewards, ANameStaysWithTheGuestThatHasIt) {
  first_ = guest("node/first");
  ASSERT_TRUE(first_->attach());
  second_ = guest("node/second");
  const auto taken = second_->present();
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().message, "reward/x belongs to another process");
  EXPECT_TRUE(first_->present());
}

TEST_F(CompanyRewards, ALossThatComesWhileARewardIsAttachedIsToldAfterwards) {
  first_ = guest("node/first");
  ASSERT_TRUE(first_->present());
  held_ = true;
  std::thread asking([this] { EXPECT_TRUE(first_->attach()); });
  EXPECT_TRUE(events_.await("x is being attached"));
  EXPECT_TRUE(first_->exchange->kill_actor("reward/x"));
  EXPECT_TRUE(events_.await("reward/x is lost"));
  held_ = false;
  asking.join();
  EXPECT_EQ(events_.all(),
            (std::vector<std::string>{"node/first is in", "x is being attached", "reward/x is lost",
                                      "x is attached", "reward/x is lost"}));
}

}  // namespace troupe::actors::company
