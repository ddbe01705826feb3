// Starts and stops of roles that are asked for twice, late or in another order.
#include "actors/node/node_role.hpp"

#include "actors/protocol/ask.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "tests/sim/sim_network.hpp"
#include "tests/unit/actors/idle_role.hpp"
#include "tests/unit/runtime/cluster/support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace troupe::actors::node {
namespace {

using namespace std::chrono_literals;
using cluster::testing::kSteps;
using cluster::testing::Later;

// Takes a tenth of a second, and counts. A rank of a gang waits for the others, who never come.
class CountingMaker final : public RoleMaker {
 public:
  explicit CountingMaker(async::Timers& timers) : timers_(timers), let_go_(timers) {}
  async::task<core::Result<cluster::RoleRecipe>> make(Spawn spawn) override {
    made.push_back(spawn.epoch);
    co_await async::sleep_for(timers_, 100ms);
    while (spawn.ranks > 1 && abandoned_ < spawn.epoch)
      co_await let_go_.wait(async::Deadline::none());
    if (spawn.ranks > 1) co_return core::fail(core::ErrorCode::kClosed, "let go");
    cluster::RoleRecipe recipe;
    recipe.factory =
        [](const cluster::RoleServices&) -> core::Result<std::unique_ptr<cluster::Role>> {
      return std::unique_ptr<cluster::Role>(std::make_unique<testing::IdleRole>());
    };
    co_return recipe;
  }
  void abandon(const std::string&, std::uint64_t epoch) override { end_until(epoch); }
  void abandon_starts() override { end_until(std::numeric_limits<std::uint64_t>::max()); }
  std::vector<std::uint64_t> made;  // epochs

 private:
  void end_until(std::uint64_t epoch) {
    abandoned_ = std::max(abandoned_, epoch);
    let_go_.notify_all();
  }
  async::Timers& timers_;
  std::uint64_t abandoned_ = 0;
  async::Notifier let_go_;
};

async::task<bool> stop_all(HostedRoles* roles,
                           std::shared_ptr<NodeRole>* node,
                           cluster::RoleHost* host,
                           std::shared_ptr<cluster::Endpoint> asker) {
  co_await roles->stop_all();
  co_await host->stop();
  node->reset();
  co_await asker->stop();
  co_return true;
}

async::task<bool> settle(HostedRoles* roles) {
  co_await roles->settle();
  co_return true;
}

class NodeRoleTest : public ::testing::Test {
 protected:
  NodeRoleTest() {
    asker_ = join("company/0");
    auto endpoint = join("node/a");
    host_ = std::make_unique<cluster::RoleHost>(endpoint, cluster::RoleHost::Hooks{});
    HostedRoles::Ports hosted;
    hosted.place = [this](cluster::Identity identity) { return network_.join(identity); };
    hosted.maker = &maker_;
    hosted.note = [](const std::string&) {};
    roles_ = std::make_unique<HostedRoles>(endpoint->strand(), time_, std::move(hosted));
    auto factory = factory_of<NodeRole>([this](RoleContext context) {
      NodePorts ports;
      ports.roles = roles_.get();
      return node_ = std::make_shared<NodeRole>(std::move(context), Join{}, std::move(ports));
    });
    Later<core::Result<void>> started(endpoint->strand(), host_->start(std::move(factory)));
    run(1ms);
    EXPECT_TRUE(started.value());
  }
  ~NodeRoleTest() override {
    Later<bool> stopped(time_.make_strand(), stop_all(roles_.get(), &node_, host_.get(), asker_));
    run(1s);
    EXPECT_TRUE(stopped.done());
  }

  std::shared_ptr<cluster::Endpoint> join(const std::string& name) {
    return network_.join({name, core::RunId{0}, 1}).value();
  }
  void run(core::Duration span) { EXPECT_TRUE(time_.run_for(span, kSteps)); }
  template <class Request>
  Later<core::Result<Ack>> begin(Request request) {
    RoleContext context;
    context.transport = asker_;
    context.timers = &time_;
    return {asker_->strand(), ask(context, "node/a", std::move(request))};
  }
  template <class Request>
  core::Result<Ack> asked(Request request) {
    auto answer = begin(std::move(request));
    run(1s);
    return answer.value();
  }
  static Spawn spawn_of(std::uint64_t epoch) {
    Spawn spawn;
    spawn.kind = "reward";
    spawn.name = "reward/0";
    spawn.epoch = epoch;
    return spawn;
  }

  cluster::sim::VirtualTime time_;
  cluster::sim::SimNetwork network_{time_, 1, {}};
  CountingMaker maker_{time_};
  std::shared_ptr<cluster::Endpoint> asker_;
  std::unique_ptr<HostedRoles> roles_;
  std::unique_ptr<cluster::RoleHost> host_;
  std::shared_ptr<NodeRole> node_;
};

using NodeRoles = NodeRoleTest;
using Epochs = std::vector<std::uint64_t>;

TEST_F(NodeRoles, ARepeatedStartChangesNothing) {
  auto first = begin(spawn_of(3));
  auto second = begin(spawn_of(3));  // while the first is at work
  run(1s);
  EXPECT_TRUE(first.value());
  EXPECT_TRUE(second.value());
  EXPECT_TRUE(asked(spawn_of(3)));
  EXPECT_EQ(maker_.made, Epochs{3});
}

// A stop does not wait for a start that waits for other processes.
TEST_F(NodeRoles, ARankThatWaitsForItsGangIsLetGo) {
  Spawn spawn = spawn_of(3);
  spawn.ranks = 2;
  auto started = begin(spawn);
  run(1s);
  EXPECT_FALSE(started.done()) << "the other rank is not there";
  EXPECT_TRUE(asked(StopRole{"reward/0", 3}));
  ASSERT_TRUE(started.done());
  EXPECT_EQ(started.value().error().code, core::ErrorCode::kClosed);
  EXPECT_TRUE(asked(spawn_of(4))) << "the next start is another one";
}

TEST_F(NodeRoles, ANodeWithoutACompanyLetsGoOfRanksThatNeedIt) {
  Spawn spawn = spawn_of(3);
  spawn.ranks = 2;
  auto started = begin(spawn);
  run(1s);
  Later<bool> settled(time_.make_strand(), settle(roles_.get()));
  run(1s);
  EXPECT_TRUE(settled.done());
  EXPECT_TRUE(started.done());
}

TEST_F(NodeRoles, ALaterEpochTakesTheRolesPlaceAndAnOlderOneDoesNot) {
  ASSERT_TRUE(asked(spawn_of(3)));
  ASSERT_TRUE(asked(spawn_of(4)));
  const auto old = asked(spawn_of(3));
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().message,
            "node/a: reward/0 of epoch 4 was here; it is not started with epoch 3");
  EXPECT_EQ(maker_.made, (Epochs{3, 4}));
}

TEST_F(NodeRoles, AStartThatComesAfterItsStopIsRefused) {
  ASSERT_TRUE(asked(spawn_of(3)));
  ASSERT_TRUE(asked(StopRole{"reward/0", 3}));
  EXPECT_FALSE(asked(spawn_of(3)));
  EXPECT_TRUE(asked(spawn_of(4)));
  EXPECT_EQ(maker_.made, (Epochs{3, 4}));
}

// Epochs of two runs do not compare, and nothing of one plays in the other.
TEST_F(NodeRoles, AnotherRunBeginsAnew) {
  Spawn other = spawn_of(9);
  other.name = "reward/1";
  ASSERT_TRUE(asked(spawn_of(4)));
  ASSERT_TRUE(asked(other));
  ASSERT_TRUE(asked(StopRole{"reward/1", 9}));
  Spawn next = spawn_of(4);
  next.run_id = 7;
  EXPECT_TRUE(asked(next)) << "the same epoch of another run is another start";
  ASSERT_EQ(roles_->list().size(), 1u);
  EXPECT_EQ(roles_->list()[0].run_id, 7u);
  other.run_id = 7;
  other.epoch = 2;
  EXPECT_TRUE(asked(other)) << "its epochs of the last run are forgotten";
  EXPECT_EQ(maker_.made, (Epochs{4, 9, 4, 2}));
  EXPECT_FALSE(asked([&] {
    Spawn late = next;
    late.epoch = 3;
    return late;
  }()))
      << "within a run they count";
}

TEST_F(NodeRoles, AnotherRunEndsWhatTheLastOneHasHere) {
  Spawn other = spawn_of(5);
  other.name = "reward/1";
  ASSERT_TRUE(asked(spawn_of(4)));
  ASSERT_TRUE(asked(other));
  Spawn next = spawn_of(1);
  next.run_id = 7;
  ASSERT_TRUE(asked(next));
  ASSERT_EQ(roles_->list().size(), 1u) << "reward/1 was of the other run";
}

TEST_F(NodeRoles, AStopOfAnEarlierStartLeavesALaterOneAlone) {
  ASSERT_TRUE(asked(spawn_of(3)));
  ASSERT_TRUE(asked(spawn_of(4)));
  ASSERT_TRUE(asked(StopRole{"reward/0", 3}));
  EXPECT_TRUE(asked(spawn_of(4))) << "it is there still";
  EXPECT_EQ(maker_.made, (Epochs{3, 4}));
  ASSERT_TRUE(asked(StopRole{"reward/0"})) << "whichever is there";
  EXPECT_FALSE(asked(spawn_of(4)));
}

}  // namespace
}  // namespace troupe::actors::node
