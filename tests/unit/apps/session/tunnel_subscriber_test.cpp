// Weights from another host: one connection through the gateway for all versions, made anew when it
// breaks.
#include "apps/session/node/tunnel_subscriber.hpp"

#include "runtime/net/gateway.hpp"
#include "tests/unit/runtime/weights/fixture.hpp"

#include <gtest/gtest.h>

namespace troupe::session {
namespace {

using weights::tiny;

class TunnelSubscriberTest : public testing::Test {
 protected:
  TunnelSubscriberTest() : source_(tiny()) {
    target_.host = "127.0.0.1";
    target_.auth.token = *net::make_token();
  }
  // The location as a message brings it to a node of another host.
  weights::WeightLocation publish(core::Version version) {
    auto at = source_.publish(version);
    at.host_id = "another host";
    port_ = static_cast<std::uint16_t>(at.tcp_port);
    return at;
  }
  void open_gateway() {
    auto opened = net::Gateway::open("127.0.0.1", target_.port, target_.auth,
                                     {{"weights", net::Gateway::Service(port_)}}, {});
    ASSERT_TRUE(opened) << opened.error().message;
    gateway_ = std::move(*opened);
    target_.port = gateway_->port();
  }
  void expect_version(TunnelSubscriber& subscriber, core::Version version) {
    const auto got = weights::receive(subscriber, version, publish(version));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_TRUE(weights::holds_version(**got, version));
  }
  std::uint64_t accepted() { return source_.publisher->counters().server.accepted; }

  weights::Source source_;
  JoinTarget target_;
  async::IoThreads io_{1};
  std::uint16_t port_ = 0;
  std::unique_ptr<net::Gateway> gateway_;
};

TEST_F(TunnelSubscriberTest, AllVersionsComeByOneConnection) {
  publish(1);
  open_gateway();
  TunnelSubscriber subscriber(io_, target_,
                              std::make_shared<weights::RemoteWeightSubscriber>(tiny()));
  for (core::Version version = 2; version < 7; ++version)
    expect_version(subscriber, version);
  EXPECT_EQ(accepted(), 1u);
}

TEST_F(TunnelSubscriberTest, ABrokenLinkIsMadeAnew) {
  publish(1);
  open_gateway();
  TunnelSubscriber subscriber(io_, target_,
                              std::make_shared<weights::RemoteWeightSubscriber>(tiny()));
  expect_version(subscriber, 2);
  gateway_.reset();
  const auto away = subscriber.fetch(3, publish(3), weights::kLong);
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().code, core::ErrorCode::kPeerLost) << away.error().message;
  open_gateway();
  expect_version(subscriber, 4);
  expect_version(subscriber, 5);
  EXPECT_EQ(accepted(), 2u);
}

}  // namespace
}  // namespace troupe::session
