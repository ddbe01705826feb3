// Messages that are longer than a frame: what the asker and the asked see of them.
#include "runtime/cluster/limits.hpp"
#include "tests/sim/sim_network.hpp"
#include "tests/unit/runtime/cluster/support.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::cluster {
namespace {

using namespace testing;
using sim::Faults;
using sim::SimNetwork;
using sim::VirtualTime;

class LongMessages : public ::testing::Test {
 protected:
  ~LongMessages() override {
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

  const std::string text_ = std::string(5u << 20, 'a') + "the end";
  VirtualTime time_;
  SimNetwork network_{time_, 1, Faults{1ms, 1ms, 0, 0, 100ms}};
  std::vector<std::shared_ptr<Endpoint>> members_;
};

TEST_F(LongMessages, ARequestAndItsAnswerComeWholeOnANetworkThatDoublesAndReorders) {
  network_.set_faults(Faults{1ms, 50ms, 0, 1.0, 100ms});
  auto generator = join("generator/0"), data = join("data/0");
  int served = 0;
  data->serve([&served](wire::Frame frame) {
    ++served;
    return echo("data/0", std::move(frame));
  });
  Asked asked(generator->strand(), ask(generator, "data/0", text_, 60s));
  EXPECT_TRUE(time_.run_until_quiet(kSteps));
  EXPECT_EQ(asked.value().value(), "data/0 heard " + text_);
  EXPECT_EQ(served, 1);
  EXPECT_EQ(generator->part_bytes(), 0u);
  EXPECT_EQ(data->part_bytes(), 0u);
}

TEST_F(LongMessages, ASenderThatIsLostBetweenPartsLeavesNothingBehind) {
  auto generator = join("generator/0"), data = join("data/0");
  data->serve(echo_handler("data/0"));
  Asked asked(generator->strand(), ask(generator, "data/0", text_, 60s));
  EXPECT_TRUE(time_.run_for(5ms, kSteps));
  EXPECT_GT(data->part_bytes(), 5u << 20);
  network_.crash("generator/0");
  EXPECT_TRUE(time_.run_until_quiet(kSteps));
  EXPECT_EQ(data->part_bytes(), 0u);
  // Its next life begins anew.
  auto again = join("generator/0", 2);
  Asked next(again->strand(), ask(again, "data/0", text_, 60s));
  EXPECT_TRUE(time_.run_until_quiet(kSteps));
  EXPECT_EQ(next.value().value(), "data/0 heard " + text_);
}

TEST_F(LongMessages, APartHasADeadlineOfItsOwn) {
  auto generator = join("generator/0"), data = join("data/0");
  data->serve(echo_handler("data/0"));
  Asked asked(generator->strand(), ask(generator, "data/0", text_, 3600s));
  EXPECT_TRUE(time_.run_for(5ms, kSteps));
  network_.freeze("data/0");
  EXPECT_TRUE(time_.run_for(limits::kPartDeadline + 1s, kSteps));
  ASSERT_TRUE(asked.done());
  EXPECT_EQ(asked.value().error().code, ErrorCode::kDeadline);
  EXPECT_NE(asked.value().error().message.find("of 6 of pong"), std::string::npos)
      << asked.value().error().message;
  network_.thaw("data/0");
  EXPECT_TRUE(time_.run_until_quiet(kSteps));
}

TEST_F(LongMessages, WhatIsServedCountsUntilItIsAnswered) {
  auto generator = join("generator/0"), data = join("data/0");
  data->serve(never);
  Asked asked(generator->strand(), ask(generator, "data/0", text_, 10s));
  EXPECT_TRUE(time_.run_for(1s, kSteps));
  EXPECT_GT(data->part_bytes(), 5u << 20);
  EXPECT_TRUE(time_.run_for(10s, kSteps));
  EXPECT_EQ(asked.value().error().code, ErrorCode::kDeadline);
}

}  // namespace
}  // namespace troupe::cluster
