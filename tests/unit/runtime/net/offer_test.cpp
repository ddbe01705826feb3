// A service of a host that nobody can dial, reached through a gateway by peers of other hosts.
#include "runtime/net/offer.hpp"

#include "runtime/async/run_on.hpp"
#include "runtime/net/limits.hpp"
#include "runtime/net/socket_folder.hpp"
#include "tests/unit/runtime/net/gateway_support.hpp"

#include <future>
#include <set>

namespace troupe::net::test {
namespace {

class OfferTest : public GatewayFixture {
 protected:
  core::Result<std::unique_ptr<Offer>> offer(GatewayAuth auth,
                                             const std::string& service = "rank") {
    return Offer::open(io_, "127.0.0.1", gateway_->port(), std::move(auth), service, socket_,
                       kPatience, [this](const std::string& line) { offer_log_.add(line); });
  }
  // Accepts the next connection of the offered service.
  Socket next() {
    pollfd entry{listener_.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&entry, 1, std::chrono::milliseconds(kPatience).count()), 1);
    return Socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

  SocketFolder folder_ = std::move(*SocketFolder::make());
  const std::string socket_ = folder_.socket("rank");
  OwnedFd listener_ = std::move(*listen_unix(socket_));
  Log offer_log_;
};

}  // namespace

TEST_F(OfferTest, ConnectsTwoPeersThatTheGatewayCannotDial) {
  for (const GatewayAuth& auth : {token_auth(token_), ca_auth("ca")}) {
    open_gateway(auth);
    auto offered = offer(auth);
    ASSERT_TRUE(offered) << offered.error().message;
    auto way = tunnel(auth, "rank");
    ASSERT_TRUE(way) << way.error().message;
    const std::string bytes(3'000'000, 'x');
    Socket near = Socket::to((*way)->path());
    std::thread there([&] {
      Socket far = next();
      EXPECT_EQ(far.receive(5), "hello");
      EXPECT_TRUE(far.send(bytes));
      far.end();
      EXPECT_EQ(far.receive(), "well");  // the other direction goes on
    });
    ASSERT_TRUE(near.send("hello"));
    bool ended = false;
    EXPECT_TRUE(near.receive(std::string::npos, &ended) == bytes);
    EXPECT_TRUE(ended);
    ASSERT_TRUE(near.send("well"));
    near.end();
    there.join();
    (*offered)->stop();
    gateway_->stop();
  }
  EXPECT_EQ(log_.text() + tunnel_log_.text(), "");
}

// More peers at once than connections are kept ready.
TEST_F(OfferTest, EachPeerGetsAConnectionOfItsOwn) {
  open_gateway(token_auth(token_));
  auto offered = offer(token_auth(token_));
  ASSERT_TRUE(offered) << offered.error().message;
  auto way = tunnel(token_auth(token_), "rank");
  ASSERT_TRUE(way) << way.error().message;
  constexpr int kPeers = 20;
  std::vector<Socket> near, far;
  for (int i = 0; i < kPeers; ++i) {
    near.push_back(Socket::to((*way)->path()));
    ASSERT_TRUE(near.back().send(std::string(1, static_cast<char>('a' + i))));
  }
  std::string seen;
  for (int i = 0; i < kPeers; ++i) {
    far.push_back(next());
    const std::string name = far.back().receive(1);
    seen += name;
    ASSERT_TRUE(far.back().send(name + "!"));
  }
  for (int i = 0; i < kPeers; ++i)
    EXPECT_EQ(near[static_cast<std::size_t>(i)].receive(2),
              std::string(1, static_cast<char>('a' + i)) + "!");
  EXPECT_EQ(std::set<char>(seen.begin(), seen.end()).size(), static_cast<std::size_t>(kPeers));
  EXPECT_EQ(log_.text() + tunnel_log_.text() + offer_log_.text(), "");
}

// A peer that has proved itself waits for a connection on offer longer than for its proof.
TEST_F(OfferTest, APeerWaitsForTheOneThatOffersWhenItIsSlow) {
  open_gateway(token_auth(token_));
  async::IoThreads slow{1};
  auto offered = Offer::open(slow, "127.0.0.1", gateway_->port(), token_auth(token_), "rank",
                             socket_, kPatience);
  ASSERT_TRUE(offered) << offered.error().message;
  auto way = tunnel(token_auth(token_), "rank");
  ASSERT_TRUE(way) << way.error().message;
  std::promise<void> gate;
  async::post(slow.make_strand(), [held = gate.get_future().share()] { held.wait(); });
  std::vector<Socket> near, far;
  for (std::size_t i = 0; i <= limits::kOffers_ready; ++i) {
    near.push_back(Socket::to((*way)->path()));
    ASSERT_TRUE(near.back().send("hello"));
  }
  // Others that came after them have run out of time to prove themselves.
  EXPECT_TRUE(Socket::to(gateway_->port()).closed());
  gate.set_value();
  for (std::size_t i = 0; i <= limits::kOffers_ready; ++i) {
    far.push_back(next());
    EXPECT_EQ(far.back().receive(5), "hello");
  }
  EXPECT_EQ(tunnel_log_.text(), "");
  near.clear();
  far.clear();
  (*offered)->stop();
}

TEST_F(OfferTest, NobodyTakesTheNameOfAServiceOfTheGateway) {
  open_gateway(token_auth(token_));
  auto stolen = offer(token_auth(token_), "echo");
  ASSERT_FALSE(stolen);
  EXPECT_EQ(stolen.error().code, core::ErrorCode::kNotFound) << stolen.error().message;
  EXPECT_NE(stolen.error().message.find("'echo' is a service of the gateway's own"),
            std::string::npos)
      << stolen.error().message;
  expect_open(token_auth(token_));
}

TEST_F(OfferTest, AStrangerOffersNothing) {
  open_gateway(token_auth(token_));
  auto strange = offer(token_auth(*make_token()));
  ASSERT_FALSE(strange);
  EXPECT_EQ(strange.error().code, core::ErrorCode::kConfig) << strange.error().message;
  auto way = tunnel(token_auth(token_), "rank");
  ASSERT_FALSE(way);
  EXPECT_EQ(way.error().code, core::ErrorCode::kNotFound) << way.error().message;
}

TEST_F(OfferTest, OneThatIsGoneIsNotFound) {
  open_gateway(token_auth(token_));
  auto offered = offer(token_auth(token_));
  ASSERT_TRUE(offered) << offered.error().message;
  (*offered)->stop();
  // The gateway sees the end of the connections a moment later.
  const auto late = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    auto way = tunnel(token_auth(token_), "rank");
    if (!way && way.error().code == core::ErrorCode::kNotFound) break;
    ASSERT_LT(std::chrono::steady_clock::now(), late);
  }
}

TEST_F(OfferTest, WhatWasTakenIsCarriedAfterItsEnd) {
  open_gateway(token_auth(token_));
  auto offered = offer(token_auth(token_));
  ASSERT_TRUE(offered) << offered.error().message;
  auto way = tunnel(token_auth(token_), "rank");
  ASSERT_TRUE(way) << way.error().message;
  Socket near = Socket::to((*way)->path());
  ASSERT_TRUE(near.send("one"));
  Socket far = next();
  EXPECT_EQ(far.receive(3), "one");
  (*offered)->end();
  ASSERT_TRUE(near.send("two"));
  EXPECT_EQ(far.receive(3), "two");
  ASSERT_TRUE(far.send("three"));
  EXPECT_EQ(near.receive(5), "three");
}

}  // namespace troupe::net::test
