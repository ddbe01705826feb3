// Ranks of different hosts, connected through a real gateway by TLS.
#include "runtime/net/gateway.hpp"

#include "runtime/collective/gateway_rendezvous.hpp"
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
  std::getline(std::getline(in, host), socket);
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

// Four ranks on three hosts: two with the gateway, and one on each of two others, which reach
// nothing but the gateway. Nobody listens on TCP but that.
TEST(Gateway, JoinsRanksOfHostsThatReachNothingElse) {
  const troupe::test::TempFolder folder;
  const std::string hosts[] = {"head", "head", "one", "other"};
  const auto rank = [&](int number) {
    return std::make_unique<Process>([&, number](const Line& line) {
      RankOptions options = options_of(number, 4, Ways::kWindow);
      options.host_id = hosts[number];
      async::IoThreads io(1);
      GatewayWay way{&io, "127.0.0.1", static_cast<std::uint16_t>(std::stoi(line.hear())), {}, {}};
      way.auth.token = line.hear();
      Collectives ranks(options);
      auto in_folder = std::make_unique<FolderRendezvous>(folder.path());
      std::unique_ptr<Rendezvous> rendezvous = std::move(in_folder);
      if (number > 1) {
        rendezvous = std::make_unique<GatewayRendezvous>(std::move(rendezvous), options.gang, way);
      }
      const auto connected = ranks.connect(*rendezvous);
      if (number > 1) static_cast<GatewayRendezvous&>(*rendezvous).complete();
      if (!connected) return line.say(words_of(connected.error()));
      const std::size_t size = 1'000'001;
      const std::vector<char> mine = bytes_of(5, 0, number, 0, size);
      std::vector<std::vector<char>> all(4, std::vector<char>(size));
      std::vector<Place> places;
      for (auto& one : all)
        places.push_back({one.data(), one.size()});
      const auto done = ranks.all_gather({mine.data(), mine.size()}, places);
      bool right = true;
      for (int from = 0; from < 4; ++from)
        right = right && all[static_cast<std::size_t>(from)] == bytes_of(5, 0, from, 0, size);
      line.say(done && right ? "right" : done ? "wrong bytes" : words_of(done.error()));
      if (number == 3) line.hear();
      line.say(words_of(ranks.barrier().error()));
    });
  };
  std::vector<std::unique_ptr<Process>> ranks;
  for (int number = 0; number < 4; ++number)
    ranks.push_back(rank(number));
  net::GatewayAuth auth;
  auth.token = *net::make_token();
  auto gateway = net::Gateway::open("127.0.0.1", 0, auth, {}, {});
  ASSERT_TRUE(gateway) << gateway.error().message;
  // A member of the run that is no rank comes to rank 2 before the last one does.
  async::IoThreads io(1);
  std::unique_ptr<net::Tunnel> to_two;
  net::OwnedFd stranger;
  const auto soon = [] { return core::steady_clock().now() + std::chrono::seconds(20); };
  for (const int number : {0, 1, 2, 3}) {
    while (number == 3 && !to_two) {
      auto tunnel = net::Tunnel::open(io, "127.0.0.1", (*gateway)->port(), auth,
                                      service_of_rank("policy", 2, 2), std::chrono::seconds(20));
      if (tunnel) to_two = std::move(*tunnel);
    }
    if (number == 3) stranger = std::move(*net::connect_unix(to_two->path(), soon()));
    // The last one comes when the gateway knows those of the head's host, as in a company.
    for (const int local : {0, 1}) {
      if (number < 3) break;
      const std::string file = folder / ("rank-" + std::to_string(local));
      while (!std::filesystem::exists(file))
        ::poll(nullptr, 0, 1);
      std::ifstream in(file);
      std::string host, socket;
      std::getline(std::getline(in, host), socket);
      (*gateway)->set_service(service_of_rank("policy", 2, local), socket);
    }
    const Line& line = ranks[static_cast<std::size_t>(number)]->line();
    line.say(std::to_string((*gateway)->port()));
    line.say(auth.token);
  }
  Challenge challenge;
  Hello hello = hello_of({core::RunId{7}, "policy", 2}, 3, 2, 4, Channel::kControl);
  Verdict verdict;
  const net::Patience patience{std::chrono::seconds(20)};
  if (net::receive_all(stranger, &challenge, sizeof challenge, patience, "challenge") &&
      net::send_all(stranger, &hello, sizeof hello, patience, "hello") &&
      net::receive_all(stranger, &verdict, sizeof verdict, patience, "verdict")) {
    EXPECT_EQ(verdict.admitted, Admitted::kNotProven);
  }
  for (const auto& one : ranks)
    EXPECT_EQ(one->line().hear(), "right");
  ranks[3]->kill();
  for (const int left : {0, 1, 2})
    EXPECT_EQ(ranks[static_cast<std::size_t>(left)]->line().hear(),
              "peer lost: rank 3 of policy is gone");
}

}  // namespace
}  // namespace troupe::collective::test
