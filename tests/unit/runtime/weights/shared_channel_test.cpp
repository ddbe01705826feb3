// The channel between processes, both ways, with both sides in this process: versions, leases,
// receivers of different speed, and the bounds.
#include "runtime/core/rng.hpp"
#include "tests/unit/runtime/weights/fixture.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <thread>

namespace troupe::weights {
namespace {

using core::ErrorCode;

TEST(SharedWeightChannel, BothWaysBringTheSameBits) {
  Source source(wide());
  RemoteWeightSubscriber subscriber(wide());
  for (core::Version version = 1; version < 6; ++version) {
    const WeightLocation at = source.publish(version);
    for (const WeightLocation& way : {only_memory(at), only_tcp(at)}) {
      const auto got = receive(subscriber, version, way);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_TRUE(holds_version(**got, version));
    }
  }
  EXPECT_EQ(source.publisher->counters().snapshots_made, 2u) << "two in turn";
}

TEST(SharedWeightChannel, OneWhoJoinsLateGetsTheNewest) {
  Source source(tiny());
  WeightLocation at;
  for (core::Version version = 1; version < 8; ++version)
    at = source.publish(version);
  RemoteWeightSubscriber joiner(tiny());
  const auto got = receive(joiner, 0, at);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(holds_version(**got, 7));
}

TEST(SharedWeightChannel, OtherHostsComeByTcp) {
  Source source(tiny());
  const WeightLocation at = source.publish(3);
  RemoteWeightSubscriber elsewhere(tiny(), kernels::PanelDtype::kF32, "another machine");
  auto intake = elsewhere.fetch(3, at, kLong);
  ASSERT_TRUE(intake) << intake.error().message;
  EXPECT_TRUE((*intake)->verified()) << "a stream is checked as it comes";
  EXPECT_EQ(elsewhere.fetch(3, only_memory(at), kLong).error().code, ErrorCode::kPeerLost);
  WeightLocation gone = at;
  gone.socket += "x";
  RemoteWeightSubscriber here(tiny());
  EXPECT_TRUE(here.fetch(3, gone, kLong)) << "no such socket: TCP";
}

TEST(SharedWeightChannel, VersionsNeverRunBackwards) {
  Source source(tiny());
  const WeightLocation at = source.publish(5);
  Offer older;
  older.version = 4;
  older.master = &source.params;
  EXPECT_EQ(source.publisher->publish(older).error().code, ErrorCode::kInvalidArgument);
  RemoteWeightSubscriber subscriber(tiny());
  for (const WeightLocation& way : {only_memory(at), only_tcp(at)}) {
    const auto newer = subscriber.fetch(6, way, kLong);
    ASSERT_FALSE(newer);
    EXPECT_EQ(newer.error().code, ErrorCode::kNotFound);
    EXPECT_NE(newer.error().message.find("the newest is 5"), std::string::npos);
  }
}

TEST(SharedWeightChannel, ALeasedSnapshotIsNotWrittenWhileThereIsAnother) {
  Source source(tiny());
  const WeightLocation at = only_memory(source.publish(1));
  RemoteWeightSubscriber subscriber(tiny());
  auto slow = subscriber.fetch(1, at, kLong);
  ASSERT_TRUE(slow) << slow.error().message;
  for (core::Version version = 2; version < 8; ++version) {
    source.publish(version);
    const auto got = receive(subscriber, version, at);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_TRUE(holds_version(**got, version));
  }
  EXPECT_EQ(source.publisher->counters().snapshots, 3u);
  core::SerialTeam team;
  const auto done = (*slow)->advance(team, kLong);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(holds_version(*(*slow)->take(), 1));
  ASSERT_TRUE(comes_true([&] { return source.publisher->counters().server.readers == 0; }));
  source.publish(9);
  EXPECT_EQ(source.publisher->counters().snapshots, 2u);
}

TEST(SharedWeightChannel, PanelsInUseAreNotFilledAgain) {
  Source source(tiny());
  RemoteWeightSubscriber subscriber(tiny());
  std::vector<std::shared_ptr<const model::PackedWeights>> kept;
  for (core::Version version = 1; version < 6; ++version) {
    const auto got = receive(subscriber, version, source.publish(version));
    ASSERT_TRUE(got) << got.error().message;
    kept.push_back(*got);
  }
  for (std::size_t i = 0; i < kept.size(); ++i)
    EXPECT_TRUE(holds_version(*kept[i], i + 1));
  // With one holder at a time, two sets serve in turn.
  kept.clear();
  std::shared_ptr<const model::PackedWeights> current;
  std::vector<const model::PackedWeights*> seen;
  for (core::Version version = 6; version < 12; ++version) {
    current = *receive(subscriber, version, source.publish(version));
    seen.push_back(current.get());
  }
  for (std::size_t i = 2; i < seen.size(); ++i)
    EXPECT_EQ(seen[i], seen[i - 2]);
}

TEST(SharedWeightChannel, AThousandVersionsToThreeReceiversOfDifferentSpeed) {
  constexpr core::Version kLast = 1000;
  Source source(tiny());
  const WeightLocation at = source.publish(1);
  struct Follower {
    WeightLocation at;
    core::Duration budget;
    std::uint64_t taken = 0, wrong = 0;
    std::shared_ptr<const model::PackedWeights> last;
  };
  Follower followers[] = {{only_memory(at), kLong, 0, 0, nullptr},
                          {only_tcp(at), kLong, 0, 0, nullptr},
                          {at, core::Duration(0), 0, 0, nullptr}};
  std::vector<std::jthread> threads;
  for (Follower& follower : followers) {
    threads.emplace_back([&follower] {
      RemoteWeightSubscriber subscriber(tiny());
      core::Version version = 0;
      while (version < kLast) {
        auto got = receive(subscriber, version + 1, follower.at, follower.budget);
        if (!got && got.error().code == ErrorCode::kNotFound) continue;
        if (!got && got.error().code == ErrorCode::kPeerLost) continue;  // it was taken back
        if (!got || (*got)->version() <= version || !holds_version(**got, (*got)->version())) {
          ++follower.wrong;
          return;
        }
        version = (*got)->version();
        follower.last = *got;
        ++follower.taken;
      }
    });
  }
  core::Rng rng(2);
  for (core::Version version = 1; version < kLast;) {
    version = std::min(kLast, version + 1 + rng.next_below(2));
    source.publish(version);
  }
  threads.clear();
  for (const Follower& follower : followers) {
    EXPECT_EQ(follower.wrong, 0u);
    EXPECT_GT(follower.taken, 1u);
    ASSERT_NE(follower.last, nullptr);
    EXPECT_TRUE(holds_version(*follower.last, kLast));
  }
  EXPECT_LE(source.publisher->counters().snapshots_most, 3u);
}

}  // namespace
}  // namespace troupe::weights
