// Receivers in other processes that die or stand still in the middle of a version: the publisher
// goes on, and no version ever arrives with another's bits.
#include "runtime/core/rng.hpp"
#include "tests/unit/runtime/weights/reader_process.hpp"

#include <gtest/gtest.h>

namespace troupe::weights {
namespace {

class TornRead : public testing::TestWithParam<const char*> {
 protected:
  bool memory() const { return GetParam() == std::string("memory"); }
};

TEST_P(TornRead, AReceiverKilledAmidAVersionHoldsUpNobody) {
  Source source(wide());
  const WeightLocation at = source.publish(1);
  {
    ReaderProcess reader(GetParam(), wide().vocab, at);
    ASSERT_EQ(reader.ask("fetch 1"), "fetched 1");
    ASSERT_EQ(reader.ask("read"), "reading");
    if (memory()) {
      EXPECT_EQ(source.publisher->counters().server.readers, 1u);
    }
    reader.kill();
  }
  ASSERT_TRUE(comes_true([&] { return source.publisher->counters().server.readers == 0; }));
  RemoteWeightSubscriber other(wide());
  for (core::Version version = 2; version < 12; ++version) {
    source.publish(version);
    const auto got = receive(other, version, at);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_TRUE(holds_version(**got, version));
  }
  EXPECT_EQ(source.publisher->counters().snapshots, 2u);
}

TEST_P(TornRead, AReceiverFrozenAmidAVersionFinishesItUnharmed) {
  Source source(wide());
  const WeightLocation at = source.publish(1);
  ReaderProcess reader(GetParam(), wide().vocab, at);
  ASSERT_EQ(reader.ask("fetch 1"), "fetched 1");
  ASSERT_EQ(reader.ask("read"), "reading");
  reader.stop();
  RemoteWeightSubscriber other(wide());
  for (core::Version version = 2; version < 12; ++version) {
    source.publish(version);
    const auto got = receive(other, version, at);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_TRUE(holds_version(**got, version));
  }
  EXPECT_LE(source.publisher->counters().snapshots, 3u);
  reader.go_on();
  EXPECT_EQ(reader.ask("pack"), "ok 1");
  EXPECT_EQ(reader.ask("fetch 2"), "fetched 11") << "the next is the newest";
  EXPECT_EQ(reader.ask("pack"), "ok 11");
  ASSERT_TRUE(comes_true([&] { return source.publisher->counters().snapshots == 2; }));
}

TEST_P(TornRead, StoppedAnywhereItTakesWholeVersionsInOrder) {
  Source source(wide());
  const WeightLocation at = source.publish(1);
  constexpr core::Version kLast = 120;
  ReaderProcess reader(GetParam(), wide().vocab, at);
  reader.say("follow " + std::to_string(kLast));
  core::Rng rng(11);
  core::Version version = 1, seen = 0;
  while (version < kLast) {
    if (rng.next_below(2) == 0) {
      reader.stop();
      for (std::uint64_t i = 1 + rng.next_below(5); i > 0 && version < kLast; --i)
        source.publish(++version);
      reader.go_on();
    } else {
      source.publish(++version);
    }
  }
  while (seen < kLast) {
    const std::string line = reader.hear();
    ASSERT_EQ(line.substr(0, 3), "ok ") << line;
    const core::Version taken = std::stoull(line.substr(3));
    EXPECT_GT(taken, seen) << "versions never go back";
    seen = taken;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, TornRead, testing::Values("memory", "tcp"), [](const auto& way) {
  return std::string(way.param);
});

}  // namespace
}  // namespace troupe::weights
