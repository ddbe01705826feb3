// Jobs on virtual time: in order, as long as they say, held by a frozen process, ended with it.
#include "tests/sim/sim_device.hpp"

#include "tests/unit/runtime/cluster/support.hpp"

#include <gtest/gtest.h>

namespace troupe::cluster::sim {
namespace {

using namespace cluster::testing;

// Runs a job that takes `span`, and returns the time at which its awaiter goes on.
async::task<Result<core::TimePoint>> work(VirtualTime* time,
                                          SimDevice* device,
                                          core::Duration span) {
  auto job = [time, span]() -> Result<void> {
    time->pass(span);
    return {};
  };
  auto done = co_await device->run(std::move(job));
  if (!done) co_return done.failure();
  co_return time->now();
}

class SimDeviceTest : public ::testing::Test {
 protected:
  core::TimePoint at(core::Duration span) { return core::TimePoint(span); }
  VirtualTime time_;
  std::shared_ptr<VirtualThreads> threads_ = time_.make_threads();
  SimDevice device_{time_, threads_->make_strand(), "compute"};
};

using SimDevices = SimDeviceTest;

TEST_F(SimDevices, JobsRunOneAfterAnother) {
  Later<Result<core::TimePoint>> first(time_.make_strand(), work(&time_, &device_, 30ms));
  Later<Result<core::TimePoint>> second(time_.make_strand(), work(&time_, &device_, 5ms));
  EXPECT_TRUE(time_.run_until_quiet(kSteps));
  EXPECT_EQ(first.value().value(), at(30ms));
  EXPECT_EQ(second.value().value(), at(35ms));
}

TEST_F(SimDevices, AFrozenProcessBeginsAndEndsNoJob) {
  Later<Result<core::TimePoint>> first(time_.make_strand(), work(&time_, &device_, 30ms));
  Later<Result<core::TimePoint>> second(time_.make_strand(), work(&time_, &device_, 5ms));
  EXPECT_TRUE(time_.run_for(10ms, kSteps));
  threads_->freeze(true);
  EXPECT_TRUE(time_.run_for(90ms, kSteps));
  EXPECT_FALSE(first.done());
  threads_->freeze(false);
  EXPECT_TRUE(time_.run_until_quiet(kSteps));
  EXPECT_EQ(first.value().value(), at(100ms));
  EXPECT_EQ(second.value().value(), at(105ms));
}

TEST_F(SimDevices, ClosingEndsTheRunningJobAndDropsTheWaitingOnes) {
  Later<Result<core::TimePoint>> running(time_.make_strand(), work(&time_, &device_, 30ms));
  Later<Result<core::TimePoint>> waiting(time_.make_strand(), work(&time_, &device_, 5ms));
  EXPECT_TRUE(time_.run_for(10ms, kSteps));
  device_.close();
  Later<Result<core::TimePoint>> late(time_.make_strand(), work(&time_, &device_, 5ms));
  EXPECT_TRUE(time_.run_until_quiet(kSteps));
  EXPECT_EQ(running.value().value(), at(10ms));
  EXPECT_EQ(waiting.value().error().code, ErrorCode::kClosed);
  EXPECT_EQ(late.value().error().code, ErrorCode::kClosed);
}

}  // namespace
}  // namespace troupe::cluster::sim
