// Roles of one process call each other: every call ends once, at once when it can, and names the
// peer.
#include "runtime/cluster/loopback/loopback.hpp"

#include "runtime/async/io_threads.hpp"
#include "runtime/cluster/limits.hpp"
#include "tests/unit/runtime/cluster/support.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

namespace troupe::cluster {
namespace {

using namespace testing;

class LoopbackTest : public ::testing::Test {
 protected:
  ~LoopbackTest() override {
    for (auto& member : members_)
      stop(member);
  }
  std::shared_ptr<Endpoint> join(const std::string& name) {
    auto joined = network_.join(identity_of(name), time_.make_strand());
    EXPECT_TRUE(joined.has_value());
    members_.push_back(*joined);
    return *joined;
  }
  void quiet() { EXPECT_TRUE(time_.run_until_quiet(kSteps)); }
  void now() { EXPECT_TRUE(time_.run_for(0ms, kSteps)); }
  void stop(const std::shared_ptr<Endpoint>& endpoint) {
    Later<bool> stopped(endpoint->strand(), stop_endpoint(endpoint));
    now();
    EXPECT_TRUE(stopped.done());
  }

  sim::VirtualTime time_;
  LoopbackNetwork network_{time_};
  std::vector<std::shared_ptr<Endpoint>> members_;
};

using Loopback = LoopbackTest;

TEST_F(Loopback, ACallIsAnsweredByThePeer) {
  auto data = join("data/0");
  auto reward = join("reward/0");
  reward->serve(echo_handler("reward/0"));
  Asked asked(data->strand(), ask(data, "reward/0", "hello"));
  quiet();
  EXPECT_EQ(asked.value().value(), "reward/0 heard hello");
  EXPECT_EQ(data->pending_calls(), 0u);
  EXPECT_EQ(reward->inbox(), 0u);
}

TEST_F(Loopback, ARequestCarriesItsSenderEpochAndBudget) {
  auto data = join("data/0");
  auto reward = join("reward/0");
  std::optional<wire::Header> seen;
  reward->serve([&seen](wire::Frame frame) {
    seen = *wire::read_header(frame);
    return echo("reward/0", std::move(frame));
  });
  Asked asked(data->strand(), ask(data, "reward/0", "hello", 2500ms));
  quiet();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->sender, "data/0");
  EXPECT_EQ(seen->run.value, 42u);
  EXPECT_EQ(seen->epoch, 1u);
  EXPECT_EQ(seen->budget_ms, 2500u);
}

TEST_F(Loopback, TheReceiverGetsACopyOfTheBytes) {
  auto data = join("data/0");
  auto reward = join("reward/0");
  const void* received = nullptr;
  reward->serve([&received](wire::Frame frame) {
    received = frame.words().data();
    return echo("reward/0", std::move(frame));
  });
  const auto deadline = async::Deadline::after(time_, 1s);
  const wire::Frame frame = text_frame(data->new_request(deadline), "hello");
  Later<Result<wire::Frame>> called(data->strand(), data->call("reward/0", frame, deadline));
  quiet();
  EXPECT_TRUE(called.value().has_value());
  EXPECT_NE(received, nullptr);
  EXPECT_NE(received, frame.words().data());
}

async::task<Result<wire::Frame>> refuse(wire::Frame) {
  co_return core::fail(ErrorCode::kNotFound, "no such ticket");
}

TEST_F(Loopback, AHandlersErrorComesBackWithThePeersName) {
  auto data = join("data/0");
  auto reward = join("reward/0");
  reward->serve(refuse);
  Asked asked(data->strand(), ask(data, "reward/0", "hello"));
  quiet();
  EXPECT_EQ(asked.value().error().code, ErrorCode::kNotFound);
  EXPECT_EQ(asked.value().error().message, "reward/0: no such ticket");
}

async::task<Result<wire::Frame>> throw_up(wire::Frame request) {
  if (request.size_bytes() > 0) throw std::runtime_error("broken");
  co_return core::fail(ErrorCode::kInternal, "not reached");
}

TEST_F(Loopback, AHandlersExceptionIsAnsweredAndReported) {
  auto data = join("data/0");
  auto reward = join("reward/0");
  std::vector<std::string> bugs;
  reward->on_bug([&bugs](const core::Error& error) { bugs.push_back(error.message); });
  reward->serve(throw_up);
  Asked asked(data->strand(), ask(data, "reward/0", "hello"));
  quiet();
  EXPECT_EQ(asked.value().error().code, ErrorCode::kInternal);
  EXPECT_EQ(asked.value().error().message, "reward/0: broken");
  EXPECT_EQ(bugs, (std::vector<std::string>{"reward/0, serving a request of data/0: broken"}));
  Asked again(data->strand(), ask(data, "reward/0", "hello"));
  quiet();
  EXPECT_EQ(again.value().error().code, ErrorCode::kPeerLost);
}

TEST_F(Loopback, AnUnknownPeerIsLostAtOnce) {
  auto data = join("data/0");
  Asked asked(data->strand(), ask(data, "reward/7", "hello"));
  now();
  EXPECT_EQ(asked.value().error().code, ErrorCode::kPeerLost);
  EXPECT_NE(asked.value().error().message.find("reward/7"), std::string::npos);
}

TEST_F(Loopback, ARoleThatDoesNotServeYetSaysSo) {
  auto data = join("data/0");
  auto reward = join("reward/0");
  Asked asked(data->strand(), ask(data, "reward/0", "hello"));
  now();
  EXPECT_EQ(asked.value().error().message, "reward/0: the role does not serve yet");
  EXPECT_EQ(reward->inbox(), 0u);
}

TEST_F(Loopback, TheDeadlineEndsACallAndItsLateAnswerIsAStray) {
  auto data = join("data/0");
  auto reward = join("reward/0");
  async::Timers* timers = &time_;
  reward->serve([timers](wire::Frame frame) {
    struct Slow {
      static async::task<Result<wire::Frame>> answer(async::Timers* clock, wire::Frame request) {
        co_await async::sleep_for(*clock, 3s);
        auto reply = co_await echo("reward/0", std::move(request));
        co_return reply;
      }
    };
    return Slow::answer(timers, std::move(frame));
  });
  Asked asked(data->strand(), ask(data, "reward/0", "hello", 2s));
  EXPECT_TRUE(time_.run_for(1999ms, kSteps));
  EXPECT_FALSE(asked.done());
  EXPECT_TRUE(time_.run_for(1ms, kSteps));
  EXPECT_EQ(asked.value().error().code, ErrorCode::kDeadline);
  EXPECT_EQ(asked.value().error().message,
            "reward/0 did not answer 'pong' of data/0 within 2000 ms");
  EXPECT_EQ(data->stray_replies(), 0u);
  quiet();
  EXPECT_EQ(data->stray_replies(), 1u);
  EXPECT_EQ(reward->inbox(), 0u);
}

TEST_F(Loopback, AFullInboxRefusesAtOnceAndOpensAgain) {
  auto data = join("data/0");
  auto reward = join("reward/0");
  std::vector<std::shared_ptr<async::Event>> gates;
  reward->serve([&gates](wire::Frame frame) {
    struct Gated {
      static async::task<Result<wire::Frame>> answer(std::shared_ptr<async::Event> gate,
                                                     wire::Frame request) {
        co_await async::Event::wait(gate);
        auto reply = co_await echo("reward/0", std::move(request));
        co_return reply;
      }
    };
    gates.push_back(std::make_shared<async::Event>());
    return Gated::answer(gates.back(), std::move(frame));
  });
  std::vector<Asked> asked;
  const std::size_t most = limits::kRoleInbox_frames_max;
  for (std::size_t i = 0; i <= most; ++i) {
    asked.emplace_back(data->strand(), ask(data, "reward/0", std::to_string(i)));
  }
  now();
  EXPECT_EQ(reward->inbox(), most);
  for (std::size_t i = 0; i < most; ++i)
    ASSERT_FALSE(asked[i].done());
  ASSERT_TRUE(asked[most].done());
  EXPECT_EQ(asked[most].value().error().code, ErrorCode::kOverloaded);
  EXPECT_NE(asked[most].value().error().message.find("inbox of reward/0"), std::string::npos);
  gates[0]->fire();
  now();
  EXPECT_TRUE(asked[0].value().has_value());
  Asked later(data->strand(), ask(data, "reward/0", "later"));
  now();
  EXPECT_FALSE(later.done());
  for (auto& gate : gates)
    gate->fire();
  quiet();
  EXPECT_TRUE(later.value().has_value());
}

TEST_F(Loopback, AStoppedRoleFailsTheCallsToItAtOnce) {
  auto data = join("data/0");
  auto reward = join("reward/0");
  reward->serve(never);
  std::vector<Asked> asked;
  for (int i = 0; i < 5; ++i)
    asked.emplace_back(data->strand(), ask(data, "reward/0", "hello"));
  now();
  EXPECT_FALSE(asked[0].done());
  stop(reward);
  now();
  for (auto& one : asked) {
    ASSERT_TRUE(one.done());
    EXPECT_EQ(one.value().error().code, ErrorCode::kPeerLost);
    EXPECT_EQ(one.value().error().message, "reward/0: the role has stopped");
  }
  EXPECT_EQ(time_.now(), core::TimePoint());
  EXPECT_EQ(reward->inbox(), 0u);
}

TEST_F(Loopback, StopEndsTheRolesOwnCalls) {
  auto data = join("data/0");
  auto reward = join("reward/0");
  reward->serve(never);
  Asked asked(data->strand(), ask(data, "reward/0", "hello"));
  now();
  stop(data);
  EXPECT_EQ(asked.value().error().code, ErrorCode::kClosed);
  Asked late(data->strand(), ask(data, "reward/0", "hello"));
  now();
  EXPECT_EQ(late.value().error().code, ErrorCode::kClosed);
}

TEST_F(Loopback, ANameIsFreeAgainAfterItsRoleStopped) {
  auto data = join("data/0");
  auto refused = network_.join(identity_of("data/0"), time_.make_strand());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "two roles are named data/0");
  stop(data);
  join("data/0");
}

TEST_F(Loopback, ARequestIdIsUsedOnce) {
  auto data = join("data/0");
  auto reward = join("reward/0");
  reward->serve(never);
  const auto deadline = async::Deadline::after(time_, 1s);
  const wire::Frame frame = text_frame(data->new_request(deadline), "hello");
  Later<Result<wire::Frame>> first(data->strand(), data->call("reward/0", frame, deadline));
  Later<Result<wire::Frame>> second(data->strand(), data->call("reward/0", frame, deadline));
  now();
  EXPECT_FALSE(first.done());
  EXPECT_EQ(second.value().error().code, ErrorCode::kInvalidArgument);
  quiet();
}

TEST_F(Loopback, ARequestOfAnotherRunIsRefused) {
  auto joined = network_.join({"data/0", core::RunId{1}, 1}, time_.make_strand());
  auto reward = join("reward/0");
  reward->serve(echo_handler("reward/0"));
  members_.push_back(*joined);
  Asked asked((*joined)->strand(), ask(*joined, "reward/0", "hello"));
  quiet();
  EXPECT_EQ(asked.value().error().code, ErrorCode::kUnsupported);
}

// The same with real threads: nothing is lost, doubled or mixed up.
async::task<Result<void>> ask_many(std::shared_ptr<Transport> transport,
                                   PeerName peer,
                                   int count,
                                   std::atomic<int>* right) {
  for (int i = 0; i < count; ++i) {
    const std::string text = transport->identity().self + " " + std::to_string(i);
    auto answer = co_await ask(transport, peer, text, 60s);
    if (!answer) co_return answer.failure();
    if (*answer == peer + " heard " + text) ++*right;
  }
  co_return Result<void>();
}

async::task<Result<void>> ask_everybody(async::Scope& scope,
                                        std::shared_ptr<Endpoint> self,
                                        std::vector<PeerName> peers,
                                        std::atomic<int>* right) {
  for (const auto& peer : peers)
    scope.spawn("asker", ask_many(self, peer, 100, right));
  co_return Result<void>();
}

async::task<void> play(std::shared_ptr<Endpoint> self,
                       std::vector<PeerName> peers,
                       std::atomic<int>* right,
                       std::atomic<int>* ended) {
  auto result = co_await async::with_scope(ask_everybody, self, peers, right);
  EXPECT_TRUE(result) << result.error().message;
  ++*ended;
}

async::task<void> stop_on(std::shared_ptr<Endpoint> endpoint) {
  co_await endpoint->stop();
}

TEST(LoopbackThreads, ThreeRolesOnTwoThreadsTalkAtOnce) {
  async::SteadyTimers timers;
  async::IoThreads threads(2);
  LoopbackNetwork network(timers);
  const std::vector<PeerName> names{"a/0", "b/0", "c/0"};
  std::vector<std::shared_ptr<Endpoint>> members;
  for (const auto& name : names) {
    members.push_back(*network.join(identity_of(name), threads.make_strand()));
    members.back()->serve(echo_handler(name));
  }
  std::atomic<int> right{0};
  std::atomic<int> ended{0};
  for (auto& member : members) {
    boost::asio::co_spawn(member->strand(), play(member, names, &right, &ended),
                          [](std::exception_ptr error) { EXPECT_FALSE(error); });
  }
  while (ended.load() < 3)
    std::this_thread::yield();
  for (auto& member : members) {
    std::promise<void> done;
    boost::asio::co_spawn(member->strand(), stop_on(member),
                          [&done](std::exception_ptr) { done.set_value(); });
    done.get_future().wait();
  }
  threads.join();
  EXPECT_EQ(right.load(), 900);
}

}  // namespace
}  // namespace troupe::cluster
