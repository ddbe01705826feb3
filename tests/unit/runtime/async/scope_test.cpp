// The nursery: nobody leaves before all children have ended, the first error wins and cancels the
// others, and cancelling the parent reaches them all.
#include "runtime/async/scope.hpp"

#include "tests/unit/runtime/async/support.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace troupe::async {
namespace {

using core::ErrorCode;
using core::Result;
using testing::End;
using testing::Running;
using testing::yield;

using Log = std::vector<std::string>;

task<Result<void>> succeed(Log* log, std::string name) {
  co_await yield();
  log->push_back(name);
  co_return Result<void>();
}

task<Result<void>> fail_with(std::string message) {
  co_await yield();
  co_return core::fail(ErrorCode::kData, message);
}

// Waits for an event that never comes; writes down how it ended.
task<Result<void>> wait_forever(Log* log, std::string name) {
  auto event = std::make_shared<Event>();
  try {
    co_await Event::wait(event);
  } catch (const boost::system::system_error&) {
    log->push_back(name + " unwound");
    throw;
  }
  co_return Result<void>();
}

task<Result<void>> throw_something() {
  co_await yield();
  throw std::runtime_error("broken");
}

task<Result<void>> fail_at_once() {
  co_return core::fail(ErrorCode::kData, "at once");
}

TEST(Scope, JoinWaitsForEveryChildAndThoseSpawnedMeanwhile) {
  Log log;
  auto late = [](Scope* scope, Log* out) -> task<Result<void>> {
    co_await yield();
    co_await yield();
    scope->spawn("late", succeed(out, "late"));
    co_return Result<void>();
  };
  auto body = [late](Log* out) -> task<Result<void>> {
    Scope scope(co_await boost::asio::this_coro::executor);
    scope.spawn("a", succeed(out, "a"));
    scope.spawn("b", late(&scope, out));
    EXPECT_EQ(scope.children(), 2u);
    EXPECT_TRUE(out->empty());
    auto result = co_await scope.join();
    EXPECT_EQ(scope.children(), 0u);
    co_return result;
  };
  EXPECT_TRUE(testing::run_alone(body(&log)).has_value());
  EXPECT_EQ(log, (Log{"a", "late"}));
}

task<Result<void>> body_with_failure(Scope& scope, Log* log) {
  scope.spawn("sleeper", wait_forever(log, "sleeper"));
  scope.spawn("bad", fail_with("no such file"));
  scope.spawn("worse", wait_forever(log, "worse"));
  co_return Result<void>();
}

TEST(Scope, FirstErrorIsNamedAndCancelsTheSiblings) {
  Log log;
  auto result = testing::run_alone(with_scope(body_with_failure, &log));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kData);
  EXPECT_EQ(result.error().message, "bad: no such file");
  EXPECT_EQ(log, (Log{"sleeper unwound", "worse unwound"}));
}

task<Result<void>> body_with_exception(Scope& scope) {
  scope.spawn("thrower", throw_something());
  co_return Result<void>();
}

TEST(Scope, AnExceptionIsAnInternalErrorWithTheChildsName) {
  auto result = testing::run_alone(with_scope(body_with_exception));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInternal);
  EXPECT_EQ(result.error().message, "thrower: broken");
}

task<Result<void>> body_that_waits(Scope& scope, Log* log) {
  scope.spawn("one", wait_forever(log, "one"));
  scope.spawn("two", wait_forever(log, "two"));
  auto waited = co_await wait_forever(log, "body");
  co_return waited;
}

TEST(Scope, CancellingTheParentUnwindsAllChildrenFirst) {
  Log log;
  boost::asio::io_context context;
  auto outer = [](Log* out) -> task<Result<void>> {
    auto result = co_await with_scope(body_that_waits, out);
    out->push_back("left the scope");
    co_await yield();
    out->push_back("never");
    co_return result;
  };
  Running<Result<void>> running(context, outer(&log));
  context.poll();
  EXPECT_EQ(running.end(), End::kNot);
  running.cancel();
  context.run();
  EXPECT_EQ(running.end(), End::kCancelled);
  EXPECT_EQ(log, (Log{"body unwound", "one unwound", "two unwound", "left the scope"}));
}

TEST(Scope, AParentCancelledBeforeItOpensAScopeLeavesNoChild) {
  Log log;
  boost::asio::io_context context;
  std::function<void()> cancel_self;
  auto outer = [](std::function<void()>* cancel, Log* out) -> task<Result<void>> {
    co_await yield();
    (*cancel)();  // while running: nothing unwinds until the next await
    auto result = co_await with_scope(body_that_waits, out);
    co_return result;
  };
  Running<Result<void>> running(context, outer(&cancel_self, &log));
  cancel_self = [&running] { running.cancel(); };
  context.run();
  EXPECT_EQ(running.end(), End::kCancelled);
  EXPECT_TRUE(log.empty());
}

task<Result<void>> body_cancelled_inside(Scope& scope, std::function<void()>* cancel, Log* log) {
  scope.spawn("one", wait_forever(log, "one"));
  (*cancel)();
  scope.spawn("two", wait_forever(log, "two"));
  co_return Result<void>();
}

TEST(Scope, CancelDuringTheBodyReachesChildrenThatHaveNotBegun) {
  Log log;
  boost::asio::io_context context;
  std::function<void()> cancel_self;
  Running<Result<void>> running(context, with_scope(body_cancelled_inside, &cancel_self, &log));
  cancel_self = [&running] { running.cancel(); };
  context.run();
  EXPECT_NE(running.end(), End::kNot);
}

TEST(Scope, AChildThatFailsBeforeItsFirstAwaitIsHandled) {
  auto body = []() -> task<Result<void>> {
    Scope scope(co_await boost::asio::this_coro::executor);
    scope.spawn("quick", fail_at_once());
    auto result = co_await scope.join();
    co_return result;
  };
  auto result = testing::run_alone(body());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "quick: at once");
}

TEST(Scope, CancelIsNoErrorAndLaterSpawnsAreDropped) {
  Log log;
  auto body = [](Log* out) -> task<Result<void>> {
    Scope scope(co_await boost::asio::this_coro::executor);
    scope.spawn("one", wait_forever(out, "one"));
    co_await yield();
    scope.cancel();
    scope.spawn("two", succeed(out, "two"));
    auto result = co_await scope.join();
    co_return result;
  };
  EXPECT_TRUE(testing::run_alone(body(&log)).has_value());
  EXPECT_EQ(log, (Log{"one unwound"}));
}

TEST(ScopeDeathTest, LeavingAScopeWithChildrenIsABug) {
  EXPECT_DEATH(
      {
        boost::asio::io_context context;
        Log log;
        Scope scope(context.get_executor());
        scope.spawn("one", wait_forever(&log, "one"));
      },
      "left before its children ended");
}

task<Result<int>> number(int value) {
  for (int i = 0; i < 10 - value; ++i)
    co_await yield();
  co_return value;
}

task<Result<int>> no_number(std::string message) {
  co_await yield();
  co_return core::fail(ErrorCode::kNotFound, message);
}

task<Result<void>> counted(int* ended) {
  auto made = number(1);
  static_cast<void>(co_await std::move(made));
  ++*ended;
  co_return Result<void>();
}

task<Result<void>> failing(std::string message) {
  auto made = no_number(std::move(message));
  auto result = co_await std::move(made);
  co_return result.failure();
}

TEST(All, FirstErrorWinsAfterTheOthersEnded) {
  int ended = 0;
  std::vector<task<Result<void>>> tasks;
  tasks.push_back(failing("no such number"));
  tasks.push_back(failing("nor this"));
  auto result = testing::run_alone(all(std::move(tasks)));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "no such number");
  std::vector<task<Result<void>>> good;
  for (int i = 0; i < 8; ++i)
    good.push_back(counted(&ended));
  EXPECT_TRUE(testing::run_alone(all(std::move(good))));
  EXPECT_EQ(ended, 8);
}

TEST(All, OfNothingIsNothing) {
  EXPECT_TRUE(testing::run_alone(all(std::vector<task<Result<void>>>())));
}

}  // namespace
}  // namespace troupe::async
