// A publisher has three snapshots at most, however many receivers read older versions and however
// slowly: it takes the oldest back, and whoever lost one gets the next one whole.
#include "runtime/weights/limits.hpp"
#include "tests/unit/runtime/weights/fixture.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <deque>
#include <thread>

namespace troupe::weights {
namespace {

using core::ErrorCode;

// A receiver of streams that reads as much as the test tells it to.
class SlowStream {
 public:
  SlowStream(const WeightLocation& at, std::uint32_t number)
      : at_(at), number_(number), shape_(wide(), kernels::PanelDtype::kF32) {}

  void ask() {
    ++asked_;
    socket_ = connect_to(at_, Wants::kStream);
    Hello hello = hello_with(at_, Wants::kStream);
    hello.place.number = number_;
    TROUPE_CHECK(send_all(socket_, &hello, sizeof hello, kPatient, "a hello").has_value(), "hello");
    got_.clear();
    version_ = 0;
  }
  bool answered() {
    pollfd entry{socket_.get(), POLLIN, 0};
    return ::poll(&entry, 1, 0) == 1;
  }
  // The version that comes; waits for the answer.
  core::Version hear() {
    Answer answer;
    do {
      TROUPE_CHECK(receive_all(socket_, &answer, sizeof answer, kPatient, "answer").has_value(),
                   "an answer");
    } while (answer.status == AnswerStatus::kQueued);
    TROUPE_CHECK(answer.status == AnswerStatus::kHere, "a version");
    return version_ = answer.version;
  }
  // Reads one part of `parts` of the snapshot. False: the connection was cut.
  bool read(std::size_t parts) {
    const std::size_t from = got_.size();
    const std::size_t size = std::min(shape_.bytes() / parts + 1, shape_.bytes() - from);
    got_.resize(from + size);
    return receive_all(socket_, got_.data() + from, size, kPatient, "bytes").has_value();
  }
  bool whole() const { return got_.size() == shape_.bytes(); }
  void confirm() {
    const char done = 1;
    TROUPE_CHECK(send_all(socket_, &done, 1, kPatient, "the end").has_value(), "confirming");
  }
  // True when all weights are those of the version that was announced.
  bool right() const {
    const auto wanted = snapshot_of(wide(), version_);
    return whole() && std::memcmp(got_.data() + shape_.data_offset(), wanted->buckets(),
                                  shape_.image_bytes) == 0;
  }
  core::Version version() const { return version_; }
  int asked() const { return asked_; }

 private:
  const WeightLocation at_;
  const std::uint32_t number_;
  const SnapshotShape shape_;
  net::OwnedFd socket_;
  std::vector<char> got_;
  core::Version version_ = 0;
  int asked_ = 0;
};

// The publisher's counters, once so many receivers wait in its queue.
bool waiting_are(const Source& source, std::uint64_t count) {
  return comes_true([&] { return source.publisher->counters().server.queued == count; });
}

TEST(SnapshotBound, TheOldestOfThreeIsTakenBackForTheFourth) {
  Source source(wide());
  std::deque<SlowStream> slow;
  for (core::Version version = 1; version <= 3; ++version) {
    slow.emplace_back(source.publish(version), static_cast<std::uint32_t>(version)).ask();
    ASSERT_EQ(slow.back().hear(), version);
  }
  EXPECT_EQ(source.publisher->counters().snapshots, 3u);
  EXPECT_EQ(source.publisher->counters().server.taken_back, 0u);
  source.publish(4);
  EXPECT_EQ(source.publisher->counters().server.taken_back, 1u);
  EXPECT_FALSE(slow[0].read(1)) << "cut in the middle";
  for (const std::size_t one : {1u, 2u}) {
    EXPECT_TRUE(slow[one].read(1));
    EXPECT_TRUE(slow[one].right()) << one;
  }
  EXPECT_EQ(source.publisher->counters().snapshots_most, 3u);
}

TEST(SnapshotBound, WhoWasCutGetsTheNewestAndKeepsItWhileOthersWait) {
  Source source(wide());
  std::deque<SlowStream> slow;
  for (core::Version version = 1; version <= 3; ++version) {
    slow.emplace_back(source.publish(version), static_cast<std::uint32_t>(version)).ask();
    ASSERT_EQ(slow.back().hear(), version);
  }
  source.publish(4);  // cuts the first
  slow[0].ask();
  ASSERT_EQ(slow[0].hear(), 4u) << "the newest at that time";
  source.publish(5);  // cuts the second
  source.publish(6);  // cuts the third
  for (const std::size_t one : {1u, 2u}) {
    EXPECT_FALSE(slow[one].read(1));
    slow[one].ask();
  }
  ASSERT_TRUE(waiting_are(source, 2));
  // A newcomer's snapshot is younger than the kept one, and is taken back all the same.
  SlowStream newcomer(source.publish(7), 4);
  newcomer.ask();
  ASSERT_EQ(newcomer.hear(), 7u);
  source.publish(8);
  source.publish(9);
  EXPECT_FALSE(newcomer.read(1));
  for (core::Version version = 10; version < 20; ++version)
    source.publish(version);  // with the two snapshots that are not kept
  EXPECT_EQ(source.publisher->counters().server.taken_back, 4u);
  EXPECT_EQ(source.publisher->counters().server.queued, 2u);
  ASSERT_TRUE(slow[0].read(1));
  EXPECT_TRUE(slow[0].right());
  for (const std::size_t one : {1u, 2u}) {
    EXPECT_EQ(slow[one].hear(), 19u);
    ASSERT_TRUE(slow[one].read(1));
    EXPECT_TRUE(slow[one].right());
  }
  EXPECT_EQ(source.publisher->counters().snapshots_most, 3u);
}

// Whoever was never cut is served at once, even while others wait for a kept snapshot.
TEST(SnapshotBound, ANewReceiverDoesNotWaitForAKeptSnapshot) {
  Source source(wide());
  std::deque<SlowStream> slow;
  for (core::Version version = 1; version <= 3; ++version) {
    slow.emplace_back(source.publish(version), static_cast<std::uint32_t>(version)).ask();
    ASSERT_EQ(slow.back().hear(), version);
  }
  source.publish(4);
  slow[0].ask();
  ASSERT_EQ(slow[0].hear(), 4u);
  source.publish(5);
  slow[1].ask();
  ASSERT_TRUE(waiting_are(source, 1));
  RemoteWeightSubscriber fresh(wide());
  for (const WeightLocation& way : {only_tcp(source.publish(6)), only_memory(source.publish(6))}) {
    const auto got = receive(fresh, 6, way);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_TRUE(holds_version(**got, 6));
  }
  EXPECT_EQ(source.publisher->counters().server.queued, 1u);
}

// Six receivers begin at six versions and need the time of ten publications for one.
TEST(SnapshotBound, SlowReceiversAtManyVersionsAllEndAndNoneIsCutTwice) {
  constexpr std::size_t kReceivers = 6, kParts = 10;
  Source source(wide());
  core::Version version = 0;
  std::deque<SlowStream> slow;
  for (std::size_t i = 0; i < kReceivers; ++i) {
    slow.emplace_back(source.publish(++version), static_cast<std::uint32_t>(i + 1)).ask();
    ASSERT_EQ(slow.back().hear(), version);
  }
  std::size_t done = 0;
  for (int round = 0; round < 200 && done < kReceivers; ++round) {
    source.publish(++version);
    for (SlowStream& one : slow) {
      if (one.whole()) continue;
      if (one.version() == 0 && !one.answered()) continue;  // it waits
      if (one.version() == 0) one.hear();
      if (!one.read(kParts)) {
        one.ask();
      } else if (one.whole()) {
        EXPECT_TRUE(one.right()) << "version " << one.version();
        one.confirm();
        ++done;
      }
    }
  }
  EXPECT_EQ(done, kReceivers);
  for (const SlowStream& one : slow)
    EXPECT_LE(one.asked(), 2);
  EXPECT_EQ(source.publisher->counters().snapshots_most, 3u);
}

TEST(SnapshotBound, SharedMemoryThatIsTakenBackNeverBecomesPanels) {
  Source source(wide());
  RemoteWeightSubscriber subscriber(wide());
  core::SerialTeam team;
  std::vector<std::unique_ptr<WeightIntake>> held;
  WeightLocation at;
  for (core::Version version = 1; version <= 3; ++version) {
    at = only_memory(source.publish(version));
    auto intake = subscriber.fetch(version, at, kLong);
    ASSERT_TRUE(intake) << intake.error().message;
    held.push_back(std::move(*intake));
    const auto begun = held.back()->advance(team, core::Duration(0));
    ASSERT_TRUE(begun) << begun.error().message;
    EXPECT_FALSE(*begun);
  }
  source.publish(4);
  const auto cut = held[0]->advance(team, kLong);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, ErrorCode::kPeerLost);
  EXPECT_NE(cut.error().message.find("needed the memory of version 1"), std::string::npos);
  for (const std::size_t one : {1u, 2u}) {
    const auto done = held[one]->advance(team, kLong);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(holds_version(*held[one]->take(), one + 1));
  }
  const auto next = receive(subscriber, 2, at);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_TRUE(holds_version(**next, 4));
  EXPECT_EQ(source.publisher->counters().snapshots_most, 3u);
}

// The second time its snapshot is kept: publications use the two others.
TEST(SnapshotBound, SharedMemoryIsTakenBackOnceAndThenKept) {
  Source source(wide());
  RemoteWeightSubscriber slow(wide()), quick(wide()), other(wide());
  core::SerialTeam team;
  WeightLocation at = only_memory(source.publish(1));
  auto first = slow.fetch(1, at, kLong);
  source.publish(2);
  auto second = quick.fetch(2, at, kLong);
  source.publish(3);
  auto third = other.fetch(3, at, kLong);
  ASSERT_TRUE(first && second && third);
  source.publish(4);
  EXPECT_EQ((*first)->advance(team, kLong).error().code, ErrorCode::kPeerLost);
  auto again = slow.fetch(1, at, kLong);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ((*again)->version(), 4u);
  for (core::Version version = 5; version < 9; ++version)
    source.publish(version);  // takes those of `quick` and `other` back
  EXPECT_EQ(source.publisher->counters().server.taken_back, 3u);
  const auto done = (*again)->advance(team, kLong);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(holds_version(*(*again)->take(), 4));
  EXPECT_EQ(source.publisher->counters().snapshots_most, 3u);
}

// Receivers pack in the smallest slices while versions come as fast as they can, so memory is taken
// back at any moment: whatever becomes panels is one version.
TEST(SnapshotBound, PanelsAreOneVersionHoweverOftenMemoryIsTakenBack) {
  constexpr core::Version kLast = 300;
  constexpr std::size_t kReceivers = 6;
  const model::ModelSpec spec = tiny(8009);
  Source source(spec);
  const WeightLocation at = only_memory(source.publish(1));
  std::atomic<std::uint64_t> whole{0}, lost{0}, mixed{0};
  {
    std::vector<std::jthread> receivers;
    for (std::size_t i = 0; i < kReceivers; ++i) {
      receivers.emplace_back([&] {
        RemoteWeightSubscriber subscriber(spec);
        for (core::Version held = 0; held < kLast;) {
          const auto got = receive(subscriber, held + 1, at, core::Duration(0));
          if (got && !holds_version(**got, (*got)->version())) ++mixed;
          if (got) held = (*got)->version();
          if (got) ++whole;
          if (!got && got.error().code == ErrorCode::kPeerLost) ++lost;
          if (!got && got.error().code == ErrorCode::kData) ++mixed;
        }
      });
    }
    for (core::Version version = 2; version <= kLast; ++version)
      source.publish(version);
  }
  EXPECT_EQ(mixed, 0u);
  EXPECT_GE(whole, kReceivers);
  EXPECT_GE(source.publisher->counters().server.taken_back, lost);
  EXPECT_LE(source.publisher->counters().snapshots_most, 3u);
}

// Memory that nobody will write again is good to the end.
TEST(SnapshotBound, APublisherThatEndsTakesNothingBack) {
  auto source = std::make_unique<Source>(wide());
  RemoteWeightSubscriber subscriber(wide());
  auto intake = subscriber.fetch(1, only_memory(source->publish(1)), kLong);
  ASSERT_TRUE(intake) << intake.error().message;
  source.reset();
  core::SerialTeam team;
  const auto done = (*intake)->advance(team, kLong);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(holds_version(*(*intake)->take(), 1));
}

TEST(CutReceivers, RemembersABoundedNumberAndNobodyWithoutOne) {
  CutReceivers cut;
  cut.add(0);
  EXPECT_FALSE(cut.contains(0));
  for (std::uint32_t i = 1; i <= limits::kWeightCut_max; ++i)
    cut.add(i);
  cut.add(1);
  EXPECT_TRUE(cut.contains(1)) << "known already: nothing is forgotten for it";
  cut.add(5000);
  EXPECT_FALSE(cut.contains(1)) << "the oldest makes room";
  EXPECT_TRUE(cut.contains(2));
  EXPECT_TRUE(cut.contains(5000));
  cut.forget(2);
  EXPECT_FALSE(cut.contains(2));
}

}  // namespace
}  // namespace troupe::weights
