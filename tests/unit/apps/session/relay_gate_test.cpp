// Weights from node to node through the nodes' gateways.
#include "apps/session/node/relay_gate.hpp"

#include "tests/unit/runtime/weights/fixture.hpp"

#include <gtest/gtest.h>

namespace troupe::session {
namespace {

using weights::wide;

class RelayGateTest : public testing::Test {
 protected:
  RelayGateTest() : source_(wide()) {
    target_.host = "127.0.0.1";
    target_.auth.token = *net::make_token();
    for (int i = 0; i < 4; ++i) {  // they take the source's four copies and pass nothing on
      others_.push_back(std::make_unique<weights::RemoteWeightSubscriber>(
          wide(), kernels::PanelDtype::kF32, "other host " + std::to_string(i)));
    }
  }
  std::unique_ptr<weights::RemoteWeightSubscriber> subscriber(const std::string& host,
                                                              RelayGate& gate) {
    return std::make_unique<weights::RemoteWeightSubscriber>(
        wide(), kernels::PanelDtype::kF32, host, core::host_memory(), gate.options());
  }
  weights::WeightLocation publish(core::Version version) {
    const weights::WeightLocation at = only_tcp(source_.publish(version));
    for (auto& other : others_)
      EXPECT_TRUE(receive(*other, version, at));
    return at;
  }
  std::uint64_t streamed() { return source_.publisher->counters().server.streamed_bytes; }

  weights::Source source_;
  JoinTarget target_;
  async::IoThreads io_{1};
  std::vector<std::unique_ptr<weights::RemoteWeightSubscriber>> others_;
};

TEST_F(RelayGateTest, ANodeGetsVersionsFromAnotherThroughItsGateway) {
  auto gate = RelayGate::open(io_, target_, "127.0.0.1:0");
  auto child_gate = RelayGate::open(io_, target_, "");
  ASSERT_TRUE(gate && child_gate);
  EXPECT_NE((*gate)->port(), 0);
  EXPECT_EQ((*child_gate)->port(), 0) << "it listens nowhere";
  const auto relay = subscriber("host A", **gate), child = subscriber("host B", **child_gate);
  for (core::Version version = 1; version <= 3; ++version) {
    const auto at = publish(version);
    ASSERT_TRUE(receive(*relay, version, at));
    const std::uint64_t before = streamed();
    const auto got = receive(*child, version, at);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_TRUE(weights::holds_version(**got, version));
    EXPECT_EQ(streamed(), before) << "nothing came from the source";
  }
  EXPECT_TRUE(weights::comes_true([&] { return relay->relay_counters().served == 3; }));
}

TEST_F(RelayGateTest, OneThatIsNotOfTheRunIsRefusedAndGoesBackToTheSource) {
  JoinTarget stranger = target_;
  stranger.auth.token = *net::make_token();
  auto gate = RelayGate::open(io_, target_, "127.0.0.1:0");
  auto child_gate = RelayGate::open(io_, stranger, "");
  ASSERT_TRUE(gate && child_gate);
  const auto relay = subscriber("host A", **gate), child = subscriber("host B", **child_gate);
  const auto at = publish(1);
  ASSERT_TRUE(receive(*relay, 1, at));
  const std::uint64_t before = streamed();
  const auto got = receive(*child, 1, at);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(weights::holds_version(**got, 1));
  EXPECT_GT(streamed(), before);
  EXPECT_EQ(relay->relay_counters().accepted, 0u);
}

TEST_F(RelayGateTest, ANamelessPortIsNamedInTheError) {
  for (const std::string wrong : {"nowhere", "127.0.0.1:x"}) {
    const auto gate = RelayGate::open(io_, target_, wrong);
    ASSERT_FALSE(gate);
    EXPECT_EQ(gate.error().code, core::ErrorCode::kConfig);
    EXPECT_NE(gate.error().message.find("--relay"), std::string::npos) << gate.error().message;
  }
}

}  // namespace
}  // namespace troupe::session
