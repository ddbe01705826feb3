// Deadlines are absolute, timers fire in order of time, and a disarmed timer stays silent.
#include "runtime/async/deadline.hpp"

#include "runtime/async/notifier.hpp"
#include "tests/unit/runtime/async/manual_timers.hpp"
#include "tests/unit/runtime/async/support.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::async {
namespace {

using testing::End;
using testing::ManualTimers;
using testing::Running;
using namespace std::chrono_literals;

TEST(Deadline, RemainingNeverGoesBelowZero) {
  ManualTimers timers;
  const auto deadline = Deadline::after(timers, 5ms);
  EXPECT_EQ(deadline.remaining(timers), 5ms);
  timers.advance(7ms);
  EXPECT_EQ(deadline.remaining(timers), 0ms);
  EXPECT_EQ(Deadline::none().remaining(timers), core::Duration::max());
}

task<int> sleeper(Timers* timers, core::Duration span, std::vector<int>* order, int id) {
  co_await sleep_for(*timers, span);
  order->push_back(id);
  co_return id;
}

TEST(SteadyTimers, SleepersWakeInOrderOfTime) {
  boost::asio::io_context context;
  SteadyTimers timers;
  std::vector<int> order;
  Running<int> slow(context, sleeper(&timers, 30ms, &order, 2));
  Running<int> quick(context, sleeper(&timers, 1ms, &order, 1));
  context.run();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(SteadyTimers, CancelWakesASleeper) {
  boost::asio::io_context context;
  SteadyTimers timers;
  std::vector<int> order;
  Running<int> one(context, sleeper(&timers, 1h, &order, 1));
  context.poll();
  one.cancel();
  context.run();
  EXPECT_EQ(one.end(), End::kCancelled);
  EXPECT_TRUE(order.empty());
}

TEST(SteadyTimers, ADisarmedTimerIsSilentEvenWhenItsHandlerIsQueued) {
  boost::asio::io_context context;
  SteadyTimers timers;
  int fired = 0;
  auto past = timers.now() - 1ms;
  Timer first;
  Timer second;
  first = timers.arm(context.get_executor(), past, [&] {
    ++fired;
    second.disarm();
  });
  second = timers.arm(context.get_executor(), past, [&] { ++fired; });
  context.run();
  EXPECT_EQ(fired, 1);
}

task<bool> wait_notified(Notifier* notifier, Deadline deadline) {
  auto woken = co_await notifier->wait(deadline);
  co_return woken;
}

TEST(Notifier, WakesAllThatWaitNowAndNobodyLater) {
  boost::asio::io_context context;
  ManualTimers timers;
  Notifier notifier(timers);
  Running<bool> first(context, wait_notified(&notifier, Deadline::none()));
  Running<bool> second(context, wait_notified(&notifier, Deadline::after(timers, 1s)));
  context.poll();
  notifier.notify_all();
  Running<bool> late(context, wait_notified(&notifier, Deadline::after(timers, 1s)));
  context.poll();
  EXPECT_TRUE(first.value());
  EXPECT_TRUE(second.value());
  EXPECT_EQ(late.end(), End::kNot);
  timers.advance(1s);
  context.run();
  EXPECT_FALSE(late.value());
  EXPECT_EQ(notifier.waiting(), 0u);
}

TEST(Notifier, ACancelledWaiterLeavesTheList) {
  boost::asio::io_context context;
  ManualTimers timers;
  Notifier notifier(timers);
  Running<bool> one(context, wait_notified(&notifier, Deadline::none()));
  context.poll();
  EXPECT_EQ(notifier.waiting(), 1u);
  one.cancel();
  context.run();
  EXPECT_EQ(one.end(), End::kCancelled);
  EXPECT_EQ(notifier.waiting(), 0u);
}

}  // namespace
}  // namespace troupe::async
