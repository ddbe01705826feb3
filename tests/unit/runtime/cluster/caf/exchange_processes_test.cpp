// The same over real processes: what they say arrives bit for bit, and what happens to them
// (killed, frozen, started again) is noticed at once and not by a deadline: those of the calls are
// an hour away.
#include "runtime/core/rng.hpp"
#include "runtime/wire/envelope.hpp"
#include "tests/unit/runtime/cluster/caf/support.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace troupe::cluster {
namespace {

using namespace testing;

class ProcessTest : public ::testing::Test {
 protected:
  ProcessTest() {
    home_role_ = home_.join_echo("home/0");
    path_ = *home_.exchange->listen();
  }
  // A process that has introduced these roles.
  std::unique_ptr<Peer> start(std::uint64_t epoch, std::vector<std::string> names) {
    std::vector<std::string> arguments{path_, std::to_string(epoch)};
    arguments.insert(arguments.end(), names.begin(), names.end());
    auto peer = std::make_unique<Peer>(arguments);
    EXPECT_EQ(peer->line(), "ready");
    for (const auto& name : names) {
      EXPECT_NE(home_.events.wait("arrived " + name + " " + std::to_string(epoch)), "");
    }
    return peer;
  }
  // Calls that the role has taken and will never answer.
  std::vector<std::future<Result<std::string>>> start_hanging(const std::string& name, int count) {
    std::vector<std::future<Result<std::string>>> calls;
    for (int i = 0; i < count; ++i)
      calls.push_back(start_ask(home_role_, name, "never"));
    EXPECT_TRUE(ask_now(home_role_, name, "have they arrived?"));
    return calls;
  }

  Troupe home_;
  std::shared_ptr<Endpoint> home_role_;
  std::string path_;
};

using ExchangeProcesses = ProcessTest;

TEST_F(ExchangeProcesses, ARoleOfAnotherProcessAnswersAndAsks) {
  auto peer = start(1, {"node/a", "worker/0"});
  EXPECT_EQ(ask_now(home_role_, "worker/0", "pid").value(), std::to_string(peer->pid()));
  EXPECT_EQ(ask_now(home_role_, "worker/0", "call home/0").value(), "home/0 heard from worker/0");
  EXPECT_EQ(ask_now(home_role_, "worker/0", "call nobody/0").error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(peer->end(), 0);
  EXPECT_NE(home_.events.wait("lost worker/0 1"), "");
}

TEST_F(ExchangeProcesses, AKilledProcessFailsItsPendingCallsAtOnce) {
  auto peer = start(1, {"node/a", "worker/0"});
  auto calls = start_hanging("worker/0", 5);
  peer->signal(SIGKILL);
  for (auto& call : calls) {
    ASSERT_EQ(call.wait_for(kPatience), std::future_status::ready);
    const auto ended = call.get();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, ErrorCode::kPeerLost);
    EXPECT_EQ(ended.error().message, "worker/0 is lost: the connection to its process was closed");
  }
  EXPECT_NE(home_.events.wait("lost worker/0 1: worker/0 is lost: the connection"), "");
  EXPECT_NE(home_.events.wait("lost node/a 1"), "");
  EXPECT_EQ(ask_now(home_role_, "worker/0", "x").error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(home_role_->pending_calls(), 0u);
}

TEST_F(ExchangeProcesses, AKilledProcessComesBackWithAHigherEpochOnly) {
  auto first = start(3, {"node/a", "worker/0"});
  first->signal(SIGKILL);
  ASSERT_NE(home_.events.wait("lost node/a 3"), "");
  ASSERT_NE(home_.events.wait("lost worker/0 3"), "");
  Peer late({path_, "2", "node/a"});
  EXPECT_EQ(late.line(), "refused: " + path_ + ": node/a of epoch 2 comes after its epoch 3");
  auto second = start(4, {"node/a", "worker/0"});
  EXPECT_EQ(ask_now(home_role_, "worker/0", "pid").value(), std::to_string(second->pid()));
}

TEST_F(ExchangeProcesses, AnActorThatIsKilledTakesNothingElseAlong) {
  auto peer = start(1, {"node/a", "worker/0", "worker/1"});
  auto calls = start_hanging("worker/0", 3);
  auto last = start_ask(home_role_, "worker/0", "kill");
  for (auto& call : calls)
    EXPECT_EQ(call.get().error().code, ErrorCode::kPeerLost);
  last.wait();
  EXPECT_NE(home_.events.wait("lost worker/0 1: worker/0 is lost: its actor was killed"), "");
  EXPECT_EQ(ask_now(home_role_, "worker/1", "x").value(), "x");
  EXPECT_EQ(home_.events.count("lost worker/1"), 0);
}

TEST_F(ExchangeProcesses, AFrozenProcessIsGivenUpAndNotHeardWhenItThaws) {
  auto peer = start(1, {"node/a"});
  ASSERT_TRUE(ask_now(home_role_, "node/a", "awake?"));
  peer->signal(SIGSTOP);
  const auto before = home_.exchange->counters().frames_out;
  auto call = start_ask(home_role_, "node/a", "pid");
  ASSERT_TRUE(eventually([&] { return home_.exchange->counters().frames_out > before; }));
  home_.exchange->forget("node/a", {ErrorCode::kPeerLost, "node/a is frozen"});
  EXPECT_EQ(call.get().error().message, "node/a is frozen");
  peer->signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return home_.exchange->counters().stray == 1; }));
  EXPECT_EQ(home_role_->stray_replies(), 0u) << "it did not even reach the role";
}

TEST_F(ExchangeProcesses, AFrozenListenerIsNoDeadEnd) {
  Peer peer({"listen", "1", "node/b"});
  const std::string line = peer.line();
  ASSERT_EQ(line.substr(0, 3), "at ");
  const std::string path = line.substr(3);
  peer.signal(SIGSTOP);
  const auto frozen = home_.connect(path, "home/0", 1, 300ms);
  ASSERT_FALSE(frozen);
  EXPECT_EQ(frozen.error().code, ErrorCode::kDeadline);
  EXPECT_NE(frozen.error().message.find(path), std::string::npos);
  peer.signal(SIGCONT);
  const auto connected = home_.connect(path, "home/0");
  ASSERT_TRUE(connected) << connected.error().message;
  ASSERT_NE(home_.events.wait("arrived node/b"), "");
  EXPECT_TRUE(ask_now(home_role_, "node/b", "x"));
}

TEST_F(ExchangeProcesses, ARefusedProcessIsToldWhyAndEndsCleanly) {
  home_.admit = [](const wire::Hello&, const std::string&) -> Result<void> {
    return core::fail(ErrorCode::kConfig, "no");
  };
  Peer refused({path_, "1", "node/a"});
  EXPECT_EQ(refused.line(), "refused: " + path_ + ": no");
  EXPECT_EQ(refused.end(), 0);
}

// Two containers of one image: no network address but the loopback's, and the first process of
// each.
TEST_F(ExchangeProcesses, ProcessesOfEqualAddressesAndNumbersAreToldApart) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to make namespaces";
  const std::vector<std::string> container{"unshare", "--pid", "--net", "--fork", "--kill-child"};
  Peer first({"listen", "1", "node/a"}, container);
  const std::string line = first.line();
  if (line.empty()) GTEST_SKIP() << "cannot make namespaces here";
  ASSERT_EQ(line.substr(0, 3), "at ");
  Peer second({line.substr(3), "1", "node/b"}, container);
  EXPECT_EQ(second.line(), "ready");
}

// Texts of any bytes (but zero, which ends them in the builder) and sizes, many at a time.
async::task<Result<void>> send_texts(std::shared_ptr<Transport> self,
                                     PeerName peer,
                                     int count,
                                     std::uint64_t seed,
                                     std::atomic<int>* equal) {
  core::Rng rng(seed, 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t most = i % 100 == 0 ? 300'000 : 2'000;
    std::string text(rng.next_below(most), ' ');
    for (char& c : text)
      c = static_cast<char>(1 + rng.next_below(255));
    text += '.';  // no command of the peer
    auto answer = co_await ask(self, peer, text, 60s);
    if (!answer) co_return answer.failure();
    *equal += *answer == text ? 1 : 0;
  }
  co_return Result<void>();
}

TEST_F(ExchangeProcesses, TenThousandCallsBringTheSameBytesBothWays) {
  auto peer = start(1, {"node/a"});
  constexpr int kLanes = 8;
  constexpr int kCalls = 10'000;
  std::atomic<int> equal{0};
  std::vector<std::future<Result<void>>> lanes;
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes.push_back(
        start_on(home_role_->strand(), send_texts(home_role_, "node/a", kCalls / kLanes,
                                                  static_cast<std::uint64_t>(lane), &equal)));
  }
  for (auto& lane : lanes) {
    const auto ended = lane.get();
    EXPECT_TRUE(ended) << ended.error().message;
  }
  EXPECT_EQ(equal.load(), kCalls);
  const auto counters = home_.exchange->counters();
  EXPECT_EQ(counters.refused, 0u);
  EXPECT_EQ(counters.stray, 0u);
}

TEST_F(ExchangeProcesses, InfinityAndOddNumbersSurvive) {
  auto peer = start(1, {"node/a"});
  const double wanted[] = {std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity(), -0.0, 1e-310, 0.1};
  const auto deadline = async::Deadline::after(home_.timers(), kForever);
  auto made = start_on(
      home_role_->strand(),
      [](std::shared_ptr<Endpoint> self, async::Deadline until) -> async::task<wire::Header> {
        co_return self->new_request(until);
      }(home_role_, deadline));
  wire::Outgoing outgoing(made.get());
  auto values = outgoing.envelope().initScores().initValues(std::size(wanted));
  for (unsigned i = 0; i < values.size(); ++i)
    values[i].setValue(wanted[i]);
  const auto frame = outgoing.finish().value();
  auto called = start_on(home_role_->strand(), home_role_->call("node/a", frame, deadline));
  const auto reply = called.get();
  ASSERT_TRUE(reply) << reply.error().message;
  auto incoming = wire::Incoming::open(*reply);
  const auto same = incoming->read([&](schema::Envelope::Reader envelope) -> Result<bool> {
    const auto list = envelope.getScores().getValues();
    bool equal = list.size() == std::size(wanted);
    for (unsigned i = 0; equal && i < list.size(); ++i) {
      const double got = list[i].getValue();
      equal = std::memcmp(&got, &wanted[i], sizeof got) == 0;
    }
    return equal;
  });
  EXPECT_TRUE(same.value());
}

}  // namespace
}  // namespace troupe::cluster
