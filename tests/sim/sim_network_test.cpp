// Each kind of fault alone, and that a seed repeats itself.
#include "tests/sim/sim_network.hpp"

#include "tests/unit/runtime/cluster/support.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::cluster::sim {
namespace {

using namespace cluster::testing;

class SimTest : public ::testing::Test {
 protected:
  ~SimTest() override {
    for (auto& member : members_) {
      Later<bool> stopped(member->strand(), stop_endpoint(member));
      EXPECT_TRUE(time_.run_until_quiet(kSteps));
    }
    EXPECT_EQ(network_.open(), 0u);
  }
  std::shared_ptr<Endpoint> join(const std::string& name, std::uint64_t epoch = 1) {
    auto joined = network_.join(identity_of(name, epoch));
    EXPECT_TRUE(joined.has_value());
    members_.push_back(*joined);
    return *joined;
  }
  void quiet() { EXPECT_TRUE(time_.run_until_quiet(kSteps)); }
  void run_for(core::Duration span) { EXPECT_TRUE(time_.run_for(span, kSteps)); }

  VirtualTime time_;
  SimNetwork network_{time_, 1, Faults{1ms, 1ms, 0, 0, 100ms}};
  std::vector<std::shared_ptr<Endpoint>> members_;
};

using SimNetworkFaults = SimTest;

TEST_F(SimNetworkFaults, ACallTakesTwoDelays) {
  auto data = join("data/0");
  auto reward = join("reward/0");
  reward->serve(echo_handler("reward/0"));
  Asked asked(data->strand(), ask(data, "reward/0", "hello"));
  run_for(1999us);
  EXPECT_FALSE(asked.done());
  run_for(1us);
  EXPECT_EQ(asked.value().value(), "reward/0 heard hello");
}

TEST_F(SimNetworkFaults, ADroppedFrameEndsInTheDeadline) {
  auto data = join("data/0");
  auto reward = join("reward/0");
  reward->serve(echo_handler("reward/0"));
  network_.set_faults(Faults{1ms, 1ms, 1.0, 0, 100ms});
  Asked asked(data->strand(), ask(data, "reward/0", "hello", 1s));
  quiet();
  EXPECT_EQ(asked.value().error().code, ErrorCode::kDeadline);
  EXPECT_EQ(time_.now().time_since_epoch(), 1s);
}

TEST_F(SimNetworkFaults, ADoubledFrameIsAnsweredOnceAsFarAsTheAskerSees) {
  auto data = join("data/0");
  auto reward = join("reward/0");
  int served = 0;
  reward->serve([&served](wire::Frame frame) {
    ++served;
    return echo("reward/0", std::move(frame));
  });
  network_.set_faults(Faults{1ms, 1ms, 0, 1.0, 100ms});
  Asked asked(data->strand(), ask(data, "reward/0", "hello"));
  quiet();
  EXPECT_EQ(asked.value().value(), "reward/0 heard hello");
  EXPECT_EQ(served, 2);
  EXPECT_EQ(data->stray_replies(), 3u);
}

TEST_F(SimNetworkFaults, ACrashIsNoticedAfterItsTimeAndNamesTheRole) {
  auto data = join("data/0");
  auto reward = join("reward/0");
  reward->serve(never);
  Asked asked(data->strand(), ask(data, "reward/0", "hello", 10s));
  run_for(10ms);
  network_.crash("reward/0");
  Asked during(data->strand(), ask(data, "reward/0", "hello", 10s));
  run_for(99ms);
  EXPECT_FALSE(asked.done());
  run_for(1ms);
  EXPECT_EQ(asked.value().error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(asked.value().error().message, "reward/0 is lost: it crashed");
  EXPECT_EQ(during.value().error().code, ErrorCode::kPeerLost);
  Asked after(data->strand(), ask(data, "reward/0", "hello", 10s));
  run_for(0ms);
  EXPECT_EQ(after.value().error().code, ErrorCode::kPeerLost);
}

TEST_F(SimNetworkFaults, ARestartedRoleDoesNotTakeAnswersMeantForItsPredecessor) {
  auto reward = join("reward/0");
  async::Timers* timers = &time_;
  reward->serve([timers](wire::Frame frame) {
    struct Slow {
      static async::task<Result<wire::Frame>> answer(async::Timers* clock, wire::Frame request) {
        co_await async::sleep_for(*clock, 50ms);
        auto reply = co_await echo("reward/0", std::move(request));
        co_return reply;
      }
    };
    return Slow::answer(timers, std::move(frame));
  });
  auto first = join("data/0", 1);
  Asked old(first->strand(), ask(first, "reward/0", "old", 1s));
  run_for(10ms);
  network_.crash("data/0");
  auto second = join("data/0", 2);
  Asked fresh(second->strand(), ask(second, "reward/0", "new", 1s));  // request id 1 again
  quiet();
  EXPECT_EQ(old.value().error().code, ErrorCode::kClosed);
  EXPECT_EQ(fresh.value().value(), "reward/0 heard new");
  EXPECT_EQ(second->stray_replies(), 1u);
}

TEST_F(SimNetworkFaults, AFrozenRoleAnswersWhenItThaws) {
  auto data = join("data/0");
  auto reward = join("reward/0");
  reward->serve(echo_handler("reward/0"));
  network_.freeze("reward/0");
  Asked asked(data->strand(), ask(data, "reward/0", "hello", 1s));
  run_for(500ms);
  EXPECT_FALSE(asked.done());
  network_.thaw("reward/0");
  quiet();
  EXPECT_TRUE(asked.value().has_value());
}

TEST_F(SimNetworkFaults, ACutLinkHealsButWhatItSwallowedIsGone) {
  auto data = join("data/0");
  auto reward = join("reward/0");
  reward->serve(echo_handler("reward/0"));
  network_.cut("data/0", "reward/0");
  Asked lost(data->strand(), ask(data, "reward/0", "one", 1s));
  run_for(10ms);
  network_.heal();
  Asked passes(data->strand(), ask(data, "reward/0", "two", 1s));
  quiet();
  EXPECT_EQ(lost.value().error().code, ErrorCode::kDeadline);
  EXPECT_TRUE(passes.value().has_value());
}

}  // namespace
}  // namespace troupe::cluster::sim
