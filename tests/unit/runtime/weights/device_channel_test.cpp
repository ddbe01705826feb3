// Weights between two processes that compute on one device: the snapshot lies in its memory and the
// receiver opens it. Runs on the device of TROUPE_CUDA_LIBRARY, where there is one.
#include "kernels/cuda/device_team.hpp"
#include "kernels/cuda/library.hpp"
#include "tests/unit/runtime/weights/reader_process.hpp"

#include <gtest/gtest.h>

namespace troupe::weights {
namespace {

class DeviceChannel : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = kernels::cuda::open_device(0);
    if (!opened) GTEST_SKIP() << opened.error().message;
    team_ = std::make_unique<kernels::cuda::DeviceTeam>(std::move(*opened));
  }
  std::unique_ptr<core::TeamRunner> team_;
};

TEST_F(DeviceChannel, AnotherProcessPacksFromWhereTheWeightsLie) {
  const model::ModelSpec spec = wide();
  Source source(spec, std::move(team_));
  WeightLocation at = source.publish(1);
  ReaderProcess reader("device", spec.vocab, at);
  for (core::Version version = 1; version < 6; ++version) {
    if (version > 1) source.publish(version);
    const std::string name = std::to_string(version);
    ASSERT_EQ(reader.ask("fetch " + name), "fetched " + name);
    ASSERT_EQ(reader.ask("pack"), "ok " + name);
  }
  // Two snapshots on the device in turn, and none was read through shared memory or TCP.
  const auto counters = source.publisher->counters();
  EXPECT_EQ(counters.device_snapshots_made, 2u);
  EXPECT_EQ(counters.server.served, 5u);
  EXPECT_EQ(counters.server.served_on_device, 5u);
}

// A receiver that stands still before it packs keeps its snapshot; what comes later goes elsewhere.
TEST_F(DeviceChannel, AFrozenReceiverNeverSeesTwoVersions) {
  const model::ModelSpec spec = wide();
  Source source(spec, std::move(team_));
  const WeightLocation at = source.publish(1);
  ReaderProcess slow("device", spec.vocab, at), quick("device", spec.vocab, at);
  ASSERT_EQ(slow.ask("fetch 1"), "fetched 1");
  slow.stop();
  for (core::Version version = 2; version < 6; ++version) {
    const std::string name = std::to_string(version);
    source.publish(version);
    ASSERT_EQ(quick.ask("fetch " + name), "fetched " + name);
    ASSERT_EQ(quick.ask("pack"), "ok " + name);
  }
  slow.go_on();
  EXPECT_EQ(slow.ask("pack"), "ok 1");
  slow.kill();
  quick.kill();
  EXPECT_TRUE(comes_true([&] { return source.publisher->counters().server.readers == 0; }));
}

// Three snapshots on the device at most: the oldest is taken back, and never becomes panels.
TEST_F(DeviceChannel, MemoryThatIsTakenBackIsFetchedAgain) {
  const model::ModelSpec spec = wide();
  Source source(spec, std::move(team_));
  const WeightLocation at = source.publish(1);
  ReaderProcess first("device", spec.vocab, at), second("device", spec.vocab, at),
      third("device", spec.vocab, at);
  ASSERT_EQ(first.ask("fetch 1"), "fetched 1");
  source.publish(2);
  ASSERT_EQ(second.ask("fetch 2"), "fetched 2");
  source.publish(3);
  ASSERT_EQ(third.ask("fetch 3"), "fetched 3");
  source.publish(4);
  EXPECT_NE(first.ask("pack").find("needed the memory of version 1"), std::string::npos);
  EXPECT_EQ(second.ask("pack"), "ok 2");
  EXPECT_EQ(third.ask("pack"), "ok 3");
  EXPECT_EQ(first.ask("fetch 1"), "fetched 4");
  EXPECT_EQ(first.ask("pack"), "ok 4");
  EXPECT_EQ(source.publisher->counters().device_snapshots_made, 3u);
  EXPECT_EQ(source.publisher->counters().server.taken_back, 1u);
}

// One who computes on the processor, or comes by TCP, gets the same bits from a trainer on a
// device.
TEST_F(DeviceChannel, OthersTakeTheOtherWays) {
  const model::ModelSpec spec = tiny();
  Source source(spec, std::move(team_));
  const WeightLocation at = source.publish(3);
  RemoteWeightSubscriber subscriber(spec);
  for (const WeightLocation& way : {only_memory(at), only_tcp(at)}) {
    const auto got = receive(subscriber, 3, way);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_TRUE(holds_version(**got, 3));
  }
  EXPECT_EQ(source.publisher->counters().server.served_on_device, 0u);
}

// A trainer on the processor has nothing on the device: its receiver uploads what it maps.
TEST_F(DeviceChannel, ATrainerOnTheProcessorFeedsAnEngineOnTheDevice) {
  const model::ModelSpec spec = tiny();
  Source source(spec);
  const WeightLocation at = source.publish(2);
  for (const char* way : {"device", "tcp"}) {
    ReaderProcess reader(way, spec.vocab, at);
    ASSERT_EQ(reader.ask("fetch 2"), "fetched 2");
    EXPECT_EQ(reader.ask("pack"), "ok 2");
  }
}

TEST_F(DeviceChannel, AnotherModelIsRefusedByName) {
  Source source(tiny(1037), std::move(team_));
  const WeightLocation at = source.publish(1);
  ReaderProcess reader("device", 1038, at);
  EXPECT_NE(reader.ask("fetch 1").find("names, shapes or storage of the tensors differ"),
            std::string::npos);
}

}  // namespace
}  // namespace troupe::weights
