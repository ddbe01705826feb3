// A reward server that refuses, answers 503, breaks connections and hangs, then comes back: the run
// waits, keeps its groups, and has the bits of a calm run. One that stays away ends it with code 5.
// One that gives no score for a sample is told and counted.
#include "company_support.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>

namespace troupe::test {
namespace {

// Scores a query by its text. What it does instead to its n-th request (from 1) is said by
// `trouble`.
class RewardServer {
 public:
  enum class Trouble { kNone, k503, kBreak, kHang, kNull };
  using Plan = std::function<Trouble(int)>;

  // The port is taken and refuses connections until `open`.
  explicit RewardServer(Plan plan) : plan_(std::move(plan)) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(socket_, reinterpret_cast<sockaddr*>(&address), size);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~RewardServer() {
    ::shutdown(socket_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    ::close(socket_);
  }
  RewardServer(const RewardServer&) = delete;
  RewardServer& operator=(const RewardServer&) = delete;

  void open() {
    ::listen(socket_, 64);
    thread_ = std::thread([this] {
      for (int peer; (peer = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;)
        serve(peer);
    });
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/get_reward"; }
  int requests() const { return requests_; }

 private:
  void serve(int peer) {
    std::string text;
    std::size_t body = std::string::npos, length = 0;
    char chunk[65536];
    while (body == std::string::npos || text.size() < body + length) {
      const ssize_t got = ::recv(peer, chunk, sizeof chunk, 0);
      if (got <= 0) break;
      text.append(chunk, static_cast<std::size_t>(got));
      if (body == std::string::npos && (body = text.find("\r\n\r\n")) != std::string::npos) {
        body += 4;
        length = std::stoul(text.substr(text.find("Content-Length: ") + 16));
      }
    }
    const Trouble trouble = plan_(++requests_);
    if (trouble == Trouble::kHang) {
      while (::recv(peer, chunk, sizeof chunk, 0) > 0)
        continue;  // until the other side gives up
    } else if (trouble == Trouble::k503) {
      send(peer, "503 Service Unavailable", "{\"error\":\"restarting\"}");
    } else if (trouble != Trouble::kBreak) {
      send(peer, "200 OK", scores(text.substr(body), trouble == Trouble::kNull));
    }
    ::close(peer);
  }
  static void send(int peer, const std::string& status, const std::string& body) {
    const std::string reply = "HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\n" +
                              "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    ::send(peer, reply.data(), reply.size(), MSG_NOSIGNAL);
  }
  static std::string scores(const std::string& body, bool without_second) {
    nlohmann::json rewards = nlohmann::json::array();
    const auto request = nlohmann::json::parse(body);
    for (const auto& query : request["query"]) {
      int sum = 0;
      for (const char letter : query.get<std::string>())
        sum += static_cast<unsigned char>(letter);
      rewards.push_back(sum % 5);
    }
    if (without_second) rewards[1] = nullptr;
    return nlohmann::json({{"rewards", rewards}}).dump();
  }

  const Plan plan_;
  int socket_ = -1;
  std::uint16_t port_ = 0;
  std::thread thread_;
  std::atomic<int> requests_{0};
};
using Trouble = RewardServer::Trouble;

std::vector<std::string> scored_by(const RewardServer& server, std::vector<std::string> more) {
  std::vector<std::string> words = {
      "--cluster.transport",   "loopback", "--reward.rule", "",
      "--reward.rule_pattern", "",         "--reward.http", server.url()};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST(CompanyRewardAway, ARunWaitsAndHasTheBitsOfACalmOne) {
  const TinyRun files;
  RewardServer calm([](int) { return Trouble::kNone; });
  calm.open();
  CompanyRun undisturbed(files, "calm", scored_by(calm, {"--train.max_steps", "4"}));
  ASSERT_EQ(undisturbed.wait(), 0) << undisturbed.output();

  RewardServer server([](int request) {
    if (request >= 5 && request < 8) return Trouble::k503;
    if (request == 9 || request == 10) return Trouble::kBreak;
    return request == 12 ? Trouble::kHang : Trouble::kNone;
  });
  CompanyRun run(files, "away",
                 scored_by(server, {"--train.max_steps", "4", "--reward.deadline_s", "1"}));
  ASSERT_TRUE(within(CompanyRun::kLimit_s, [&] {
    return run.log().find(" is away: ") != std::string::npos || run.wait(0);
  })) << run.output();
  server.open();
  ASSERT_EQ(run.wait(), 0) << run.output();
  expect_same_bits(undisturbed.folder(), run.folder(), 4);
  expect_clean_ledger(run.folder());
  EXPECT_GE(server.requests(), 16 + 6);
  const std::string log = run.log();
  EXPECT_EQ(times_in(log, "reward http is away: "), 1u) << log;
  EXPECT_EQ(times_in(log, "reward http is back after "), 1u) << log;
  EXPECT_NE(log.find("Connection refused; waiting up to 300 s (--reward.away_s)"),
            std::string::npos)
      << log;
  EXPECT_EQ(times_in(log, " replaced: "), 0u) << log;
}

TEST(CompanyRewardAway, ASampleWithoutAScoreIsToldAndCounted) {
  const TinyRun files;
  RewardServer server(
      [](int request) { return request % 4 == 2 ? Trouble::kNull : Trouble::kNone; });
  server.open();
  CompanyRun run(files, "run", scored_by(server, {"--train.max_steps", "3"}));
  ASSERT_EQ(run.wait(), 0) << run.output();
  expect_clean_ledger(run.folder());
  for (const auto& [step, row] : metrics_of(run.folder()))
    EXPECT_EQ(row.at("reward/missing"), 1.0) << row.dump();
  EXPECT_EQ(times_in(run.log(),
                     ", sample 2 has no score: reward http: the reward server gave null "
                     "instead of a number"),
            1u)
      << run.log();
  EXPECT_NE(run.output().find("samples without a score           3 "), std::string::npos)
      << run.output();
}

TEST(CompanyRewardAway, OneThatStaysAwayEndsTheRunWithCode5) {
  const TinyRun files;
  RewardServer server([](int request) { return request > 8 ? Trouble::k503 : Trouble::kNone; });
  server.open();
  CompanyRun run(files, "run",
                 scored_by(server, {"--reward.away_s", "0.5", "--ckpt.save_steps", "0"}));
  EXPECT_EQ(run.wait(), 5) << run.output();
  EXPECT_EQ(run.steps(), 2u);
  EXPECT_NE(run.output().find("--reward.away_s"), std::string::npos) << run.output();
  EXPECT_NE(run.output().find("update 2 is saved in"), std::string::npos) << run.output();
  EXPECT_NE(run.output().find("status 503"), std::string::npos) << run.output();
  EXPECT_EQ(times_in(run.log(), " replaced: "), 0u) << run.log();
}

}  // namespace troupe::test
