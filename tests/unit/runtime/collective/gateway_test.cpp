// Two ranks of different hosts, connected through a real gateway by TLS.
#include "runtime/net/gateway.hpp"

#include "runtime/net/tunnel.hpp"
#include "tests/unit/runtime/collective/gang.hpp"

#include <poll.h>

#include <chrono>
#include <fstream>

namespace troupe::collective::test {
namespace {

// Learns from the test by which local socket rank 0 can be reached.
class ThroughTunnel final : public Rendezvous {
 public:
  ThroughTunnel(Rendezvous& real, const Line& line) : real_(real), line_(line) {}
  core::Result<Meeting> meet(int rank,
                             int size,
                             const RankAddress& mine,
                             const std::atomic<bool>& given_up) override {
    auto meeting = real_.meet(rank, size, mine, given_up);
    if (meeting && rank == 1) meeting->addresses[0].tcp_host = line_.hear();
    return meeting;
  }

 private:
  Rendezvous& real_;
  const Line& line_;
};

TEST(Gateway, CarriesTheConnectionsOfRanks) {
  const troupe::test::TempFolder folder;
  const auto rank = [&](int number) {
    return std::make_unique<Process>([&folder, number](const Line& line) {
      RankOptions options = options_of(number, 2, Ways::kStream);
      options.tcp_host.clear();  // no port but the gateway's
      Collectives ranks(options);
      FolderRendezvous folder_of_gang(folder.path());
      ThroughTunnel rendezvous(folder_of_gang, line);
      const auto connected = ranks.connect(rendezvous);
      if (!connected) return line.say(words_of(connected.error()));
      std::vector<char> mine = bytes_of(3, 0, number, 0, 5'000'001), other(mine.size());
      std::vector<Place> places = {{mine.data(), mine.size()}, {other.data(), other.size()}};
      if (number == 1) std::swap(places[0], places[1]);
      const auto done = ranks.all_gather({mine.data(), mine.size()}, places);
      const bool right = other == bytes_of(3, 0, 1 - number, 0, mine.size());
      line.say(done && right ? "right" : done ? "wrong bytes" : words_of(done.error()));
      if (number == 1) line.hear();
      line.say(words_of(ranks.barrier().error()));
    });
  };
  const auto zero = rank(0);
  auto one = rank(1);
  while (!std::filesystem::exists(folder / "rank-0"))
    ::poll(nullptr, 0, 1);
  std::ifstream in(folder / "rank-0");
  std::string host, socket;
  in >> host >> socket;
  net::GatewayAuth auth;
  auth.token = *net::make_token();
  auto gateway = net::Gateway::open("127.0.0.1", 0, auth, {{"policy-0", socket}}, {});
  ASSERT_TRUE(gateway) << gateway.error().message;
  async::IoThreads io(1);
  auto tunnel = net::Tunnel::open(io, "127.0.0.1", (*gateway)->port(), auth, "policy-0",
                                  std::chrono::seconds(60));
  ASSERT_TRUE(tunnel) << tunnel.error().message;
  one->line().say((*tunnel)->path());
  EXPECT_EQ(zero->line().hear(), "right");
  EXPECT_EQ(one->line().hear(), "right");
  one->kill();
  EXPECT_EQ(zero->line().hear(), "peer lost: rank 1 of policy is gone");
}

}  // namespace
}  // namespace troupe::collective::test
