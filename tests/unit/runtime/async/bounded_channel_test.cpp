// The channel keeps its bound and its order, and every kind of ending wakes whoever waits.
#include "runtime/async/bounded_channel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/async/scope.hpp"
#include "runtime/core/rng.hpp"
#include "tests/unit/runtime/async/manual_timers.hpp"
#include "tests/unit/runtime/async/support.hpp"

namespace troupe::async {
namespace {

using core::ErrorCode;
using core::Result;
using testing::End;
using testing::ManualTimers;
using testing::Running;
using namespace std::chrono_literals;

using Channel = BoundedChannel<std::unique_ptr<int>>;

task<Result<void>> send(Channel* channel, int value, Deadline deadline = Deadline::none()) {
  auto boxed = std::make_unique<int>(value);
  auto result = co_await channel->send(std::move(boxed), deadline);
  co_return result;
}

task<Result<int>> receive(Channel* channel, Deadline deadline = Deadline::none()) {
  auto result = co_await channel->receive(deadline);
  if (!result) co_return result.failure();
  co_return **result;
}

class BoundedChannelTest : public ::testing::Test {
 protected:
  int drain_one() {
    Running<Result<int>> one(context_, receive(&channel_));
    context_.restart();
    context_.poll();
    return one.end() == End::kReturned && one.value() ? one.value().value() : -1;
  }
  void poll() {
    context_.restart();
    context_.poll();
  }

  boost::asio::io_context context_;
  ManualTimers timers_;
  Channel channel_{timers_, "the inbox", 2};
};

using BoundedChannel = BoundedChannelTest;

TEST_F(BoundedChannel, DeliversInOrder) {
  Running<Result<void>> first(context_, send(&channel_, 1));
  Running<Result<void>> second(context_, send(&channel_, 2));
  poll();
  EXPECT_EQ(channel_.size(), 2u);
  EXPECT_EQ(drain_one(), 1);
  EXPECT_EQ(drain_one(), 2);
}

TEST_F(BoundedChannel, FullChannelMakesSendersWaitInTurn) {
  std::vector<Running<Result<void>>> senders;
  for (int i = 0; i < 5; ++i) senders.emplace_back(context_, send(&channel_, i));
  poll();
  EXPECT_EQ(channel_.size(), 2u);
  EXPECT_EQ(senders[1].end(), End::kReturned);
  EXPECT_EQ(senders[2].end(), End::kNot);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(drain_one(), i);
    EXPECT_LE(channel_.size(), 2u);
  }
  EXPECT_EQ(senders[4].end(), End::kReturned);
}

TEST_F(BoundedChannel, TrySendRefusesWhenFullAndNamesTheChannel) {
  EXPECT_TRUE(channel_.try_send(std::make_unique<int>(1)));
  EXPECT_TRUE(channel_.try_send(std::make_unique<int>(2)));
  auto refused = channel_.try_send(std::make_unique<int>(3));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(refused.error().message, "the inbox is full (2 waiting)");
}

TEST_F(BoundedChannel, NobodyOvertakesAWaitingSender) {
  std::vector<Running<Result<void>>> senders;
  for (int i = 0; i < 3; ++i) senders.emplace_back(context_, send(&channel_, i));
  poll();
  auto value = channel_.try_receive();
  ASSERT_TRUE(value);
  EXPECT_FALSE(channel_.try_send(std::make_unique<int>(9)));
  EXPECT_EQ(drain_one(), 1);
  EXPECT_EQ(drain_one(), 2);
}

TEST_F(BoundedChannel, CloseWakesABlockedReceiver) {
  Running<Result<int>> waiting(context_, receive(&channel_));
  poll();
  EXPECT_EQ(waiting.end(), End::kNot);
  channel_.close();
  poll();
  ASSERT_EQ(waiting.end(), End::kReturned);
  EXPECT_EQ(waiting.value().error().code, ErrorCode::kClosed);
}

TEST_F(BoundedChannel, CloseWakesABlockedSenderAndDrainsTheRest) {
  std::vector<Running<Result<void>>> senders;
  for (int i = 0; i < 3; ++i) senders.emplace_back(context_, send(&channel_, i));
  poll();
  channel_.close();
  poll();
  ASSERT_EQ(senders[2].end(), End::kReturned);
  EXPECT_EQ(senders[2].value().error().code, ErrorCode::kClosed);
  EXPECT_EQ(drain_one(), 0);
  EXPECT_EQ(drain_one(), 1);
  EXPECT_EQ(drain_one(), -1);
  Running<Result<void>> late(context_, send(&channel_, 7));
  poll();
  EXPECT_EQ(late.value().error().code, ErrorCode::kClosed);
}

TEST_F(BoundedChannel, CancelWakesABlockedSenderAndItsValueIsNotSent) {
  std::vector<Running<Result<void>>> senders;
  for (int i = 0; i < 4; ++i) senders.emplace_back(context_, send(&channel_, i));
  poll();
  senders[2].cancel();
  EXPECT_EQ(drain_one(), 0);  // before the cancelled sender has run
  EXPECT_EQ(senders[2].end(), End::kCancelled);
  EXPECT_EQ(drain_one(), 1);
  EXPECT_EQ(drain_one(), 3);
}

TEST_F(BoundedChannel, CancelWakesABlockedReceiverAndLosesNoValue) {
  Running<Result<int>> first(context_, receive(&channel_));
  Running<Result<int>> second(context_, receive(&channel_));
  poll();
  boost::asio::post(context_, [&] {
    first.cancel();
    EXPECT_TRUE(channel_.try_send(std::make_unique<int>(5)));  // before the cancelled one has run
  });
  poll();
  EXPECT_EQ(first.end(), End::kCancelled);
  ASSERT_EQ(second.end(), End::kReturned);
  EXPECT_EQ(second.value().value(), 5);
}

TEST_F(BoundedChannel, DeadlineEndsBothWaits) {
  Running<Result<int>> receiver(context_, receive(&channel_, Deadline::after(timers_, 10ms)));
  poll();
  timers_.advance(9ms);
  poll();
  EXPECT_EQ(receiver.end(), End::kNot);
  timers_.advance(1ms);
  poll();
  EXPECT_EQ(receiver.value().error().code, ErrorCode::kDeadline);
  EXPECT_TRUE(channel_.try_send(std::make_unique<int>(1)));
  EXPECT_TRUE(channel_.try_send(std::make_unique<int>(2)));
  Running<Result<void>> sender(context_, send(&channel_, 3, Deadline::after(timers_, 10ms)));
  poll();
  timers_.advance(10ms);
  poll();
  EXPECT_EQ(sender.value().error().code, ErrorCode::kDeadline);
  EXPECT_EQ(sender.value().error().message, "no room in the inbox in time");
  EXPECT_EQ(timers_.armed(), 0u);
}

// Random senders, receivers and cancellations: each value arrives once or was never sent.
task<Result<void>> send_many(Channel* channel, int base, int count, std::vector<int>* sent) {
  for (int i = 0; i < count; ++i) {
    auto boxed = std::make_unique<int>(base + i);
    auto result = co_await channel->send(std::move(boxed), Deadline::none());
    if (!result) break;
    sent->push_back(base + i);
  }
  co_return Result<void>();
}

task<Result<int>> receive_many(Channel* channel, std::vector<int>* got) {
  for (;;) {
    auto value = co_await channel->receive(Deadline::none());
    if (!value) co_return 0;
    got->push_back(**value);
    co_await testing::yield();
  }
}

TEST_F(BoundedChannel, EachValueArrivesOnceUnderRandomCancellation) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    core::Rng rng(seed);
    boost::asio::io_context context;
    Channel channel(timers_, "random", 1 + rng.next_below(3));
    std::vector<int> sent, got;
    std::vector<Running<Result<void>>> senders;
    std::vector<Running<Result<int>>> receivers;
    for (int i = 0; i < 4; ++i) senders.emplace_back(context, send_many(&channel, i * 100, 20, &sent));
    for (int i = 0; i < 3; ++i) receivers.emplace_back(context, receive_many(&channel, &got));
    for (int step = 0; step < 60; ++step) {
      context.restart();
      for (std::uint64_t n = rng.next_below(6); n > 0; --n) context.poll_one();
      if (rng.next_below(15) == 0) senders[rng.next_below(4)].cancel();
      if (rng.next_below(25) == 0) receivers[rng.next_below(2)].cancel();
    }
    context.restart();
    context.poll();
    channel.close();
    context.restart();
    context.run();
    // What is queued counts as sent; a cancelled receiver may hold at most the one it was handed.
    std::sort(sent.begin(), sent.end());
    std::sort(got.begin(), got.end());
    EXPECT_TRUE(std::adjacent_find(got.begin(), got.end()) == got.end()) << "seed " << seed;
    EXPECT_TRUE(std::includes(got.begin(), got.end(), sent.begin(), sent.end())) << "seed " << seed;
  }
}

}  // namespace
}  // namespace troupe::async
