// Jobs run in order on one thread; their awaiters resume on their own executor; closing and
// cancelling lose nothing and leave nothing behind.
#include "runtime/async/device_thread.hpp"

#include "tests/unit/runtime/async/support.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

namespace troupe::async {
namespace {

using core::ErrorCode;
using core::Result;
using testing::End;
using testing::Running;

task<Result<int>> run_value(DeviceThread* device, int value) {
  auto job = [value]() -> Result<int> { return value; };
  auto result = co_await device->run(std::move(job));
  co_return result;
}

task<Result<int>> run_job(DeviceThread* device, std::function<Result<int>()> job) {
  auto result = co_await device->run(std::move(job));
  co_return result;
}

task<Result<int>> run_kind(DeviceThread* device,
                           std::function<Result<int>()> job,
                           const char* kind) {
  auto result = co_await device->run(std::move(job), kind);
  co_return result;
}

// Within a job that has begun, the thread is looked at with a bound of nothing and one of an hour.
TEST(DeviceThread, SaysWhenAJobTakesTooLong) {
  using namespace std::chrono_literals;
  DeviceThread device("test");
  boost::asio::io_context context;
  EXPECT_EQ(device.wedged(0s), "");
  const auto look = [&](const char* kind) {
    std::string within_nothing, within_an_hour;
    Running<Result<int>> job(context, run_kind(
                                          &device,
                                          [&]() -> Result<int> {
                                            within_nothing = device.wedged(0s);
                                            within_an_hour = device.wedged(1h);
                                            return 1;
                                          },
                                          kind));
    context.restart();
    context.run();
    EXPECT_EQ(job.value().value(), 1);
    EXPECT_EQ(within_an_hour, "");
    return within_nothing;
  };
  const std::string step = look(DeviceQueue::kStep);
  EXPECT_EQ(step, "a job of thread 'test' (step) has run for 0 s and may run for 0 s");
  EXPECT_NE(look(DeviceQueue::kLoad).find("(load)"), std::string::npos);
  EXPECT_EQ(look("train"), "") << "the first of its kind";
  EXPECT_EQ(look(DeviceQueue::kWait), "");
  const core::SteadyClock clock{};
  for (const char* kind : {"train", DeviceQueue::kWait}) {  // much longer than the first
    std::string wedged;
    const core::TimePoint end = clock.now() + 200ms;
    Running<Result<int>> job(context, run_kind(
                                          &device,
                                          [&]() -> Result<int> {
                                            while (clock.now() < end)
                                              continue;
                                            wedged = device.wedged(0s);
                                            return 1;
                                          },
                                          kind));
    context.restart();
    context.run();
    EXPECT_EQ(wedged.empty(), kind == DeviceQueue::kWait) << wedged;
  }
  EXPECT_EQ(device.wedged(0s), "") << "nothing runs";
}

TEST(DeviceThread, RunsJobsInOrderOnOneThread) {
  DeviceThread device("test");
  boost::asio::io_context context;
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  std::vector<Running<Result<int>>> all;
  for (int i = 0; i < 50; ++i) {
    all.emplace_back(context, run_job(&device, [&order, &threads, i]() -> Result<int> {
                       order.push_back(i);
                       threads.push_back(std::this_thread::get_id());
                       return i;
                     }));
  }
  context.run();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(all[static_cast<std::size_t>(i)].value().value(), i);
    EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(threads[static_cast<std::size_t>(i)], threads[0]);
  }
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(DeviceThread, TheAwaiterResumesOnItsOwnThread) {
  DeviceThread device("test");
  const auto here = std::this_thread::get_id();
  auto body = [](DeviceThread* thread) -> task<std::thread::id> {
    auto value = co_await run_value(thread, 1);
    EXPECT_TRUE(value.has_value());
    co_return std::this_thread::get_id();
  };
  EXPECT_EQ(testing::run_alone(body(&device)), here);
}

TEST(DeviceThread, AnExceptionIsAnInternalError) {
  DeviceThread device("test");
  auto result = testing::run_alone(
      run_job(&device, []() -> Result<int> { throw std::runtime_error("broken"); }));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInternal);
  EXPECT_EQ(result.error().message, "broken");
}

// Holds the device's thread until released.
class Blocker {
 public:
  std::function<Result<int>()> job() {
    return [this]() -> Result<int> {
      begun_.count_down();
      release_.wait();
      return 0;
    };
  }
  void wait_begun() { begun_.wait(); }
  void release() { release_.count_down(); }

 private:
  std::latch begun_{1};
  std::latch release_{1};
};

TEST(DeviceThread, AFullQueueRefusesAtOnce) {
  DeviceThread device("busy", nullptr, 2);
  Blocker blocker;
  boost::asio::io_context context;
  Running<Result<int>> held(context, run_job(&device, blocker.job()));
  context.poll();
  blocker.wait_begun();
  Running<Result<int>> first(context, run_value(&device, 1));
  Running<Result<int>> second(context, run_value(&device, 2));
  Running<Result<int>> third(context, run_value(&device, 3));
  context.poll();
  ASSERT_EQ(third.end(), End::kReturned);
  EXPECT_EQ(third.value().error().code, ErrorCode::kOverloaded);
  EXPECT_NE(third.value().error().message.find("'busy'"), std::string::npos);
  blocker.release();
  context.run();
  EXPECT_EQ(first.value().value(), 1);
  EXPECT_EQ(second.value().value(), 2);
}

TEST(DeviceThread, CloseFailsWaitingJobsAndFinishesTheRunningOne) {
  DeviceThread device("test");
  Blocker blocker;
  boost::asio::io_context context;
  Running<Result<int>> held(context, run_job(&device, blocker.job()));
  context.poll();
  blocker.wait_begun();
  Running<Result<int>> waiting(context, run_value(&device, 1));
  context.poll();
  device.close();
  Running<Result<int>> late(context, run_value(&device, 2));
  context.poll();
  EXPECT_EQ(held.end(), End::kNot);
  blocker.release();
  context.run();
  EXPECT_TRUE(held.value().has_value());
  EXPECT_EQ(waiting.value().error().code, ErrorCode::kClosed);
  EXPECT_EQ(late.value().error().code, ErrorCode::kClosed);
}

TEST(DeviceThread, CancelDropsAWaitingJob) {
  DeviceThread device("test");
  Blocker blocker;
  boost::asio::io_context context;
  Running<Result<int>> held(context, run_job(&device, blocker.job()));
  context.poll();
  blocker.wait_begun();
  std::atomic<int> ran{0};
  Running<Result<int>> waiting(context,
                               run_job(&device, [&ran]() -> Result<int> { return ++ran; }));
  context.poll();
  EXPECT_EQ(device.waiting(), 1u);
  waiting.cancel();
  context.poll();
  EXPECT_EQ(waiting.end(), End::kCancelled);
  EXPECT_EQ(device.waiting(), 0u);
  blocker.release();
  context.run();
  EXPECT_EQ(ran.load(), 0);
}

TEST(DeviceThread, CancelWaitsForARunningJob) {
  DeviceThread device("test");
  Blocker blocker;
  boost::asio::io_context context;
  Running<Result<int>> held(context, run_job(&device, blocker.job()));
  context.poll();
  blocker.wait_begun();
  held.cancel();
  context.poll();
  EXPECT_EQ(held.end(), End::kNot);
  blocker.release();
  context.run();
  EXPECT_NE(held.end(), End::kNot);
}

TEST(DeviceThread, CapturesEndBeforeTheAwaiterResumes) {
  DeviceThread device("test");
  auto body = [](DeviceThread* thread) -> task<long> {
    auto token = std::make_shared<int>(7);
    auto job = [token]() -> Result<int> { return *token; };
    auto result = co_await thread->run(std::move(job));
    EXPECT_EQ(result.value(), 7);
    co_return token.use_count();
  };
  for (int i = 0; i < 100; ++i)
    EXPECT_LE(testing::run_alone(body(&device)), 2);
}

}  // namespace
}  // namespace troupe::async
