// Who feeds whom: few copies leave the publisher, processes of one host share one, and a relay that
// is lost, silent or wrong is left for one that has more.
#include "runtime/weights/relay_book.hpp"

#include "runtime/core/rng.hpp"
#include "runtime/weights/limits.hpp"

#include <gtest/gtest.h>

#include <set>

namespace troupe::weights {
namespace {

using std::chrono::seconds;

constexpr std::uint32_t kAll = 100;

class RelayBookTest : public testing::Test {
 protected:
  // The number of the parent of `number`: 0 is the publisher.
  std::uint32_t ask(std::uint32_t number,
                    std::uint64_t host,
                    std::uint32_t buckets = 0,
                    std::uint32_t avoid = 0,
                    RelayFault fault = RelayFault::kNone) {
    RelayBook::Ask ask;
    ask.place.number = number;
    ask.place.socket = "@socket";
    if (reachable_) ask.place.address = "host:1";
    ask.host = host;
    ask.turn = ++turn_;
    ask.content = {kernels::PanelDtype::kF32, version_, kAll};
    ask.buckets = buckets;
    ask.avoid = avoid;
    ask.fault = fault;
    const auto place = book_.choose(ask, now_);
    if (place) {
      EXPECT_NE(place->socket.empty(), place->address.empty()) << "one way to go";
    }
    return place ? place->number : 0;
  }
  RelayContent content() const { return {kernels::PanelDtype::kF32, version_, kAll}; }

  RelayBook book_;
  core::Version version_ = 1;
  core::TimePoint now_ = core::TimePoint() + seconds(1000);
  std::uint64_t turn_ = 0;
  bool reachable_ = true;
};

TEST_F(RelayBookTest, SixteenHostsTakeFourCopiesAndEachRelayFeedsAtMostFour) {
  std::map<std::uint32_t, int> children;
  for (std::uint32_t number = 1; number <= 16; ++number)
    ++children[ask(number, number)];
  EXPECT_EQ(children[0], 4);
  EXPECT_EQ(book_.copies(content()), 4u);
  for (const auto& [parent, count] : children)
    EXPECT_LE(count, static_cast<int>(limits::kRelayChildren_max)) << parent;
  version_ = 2;  // and again with the next version
  for (std::uint32_t number = 1; number <= 16; ++number)
    ask(number, number);
  EXPECT_EQ(book_.copies(content()), 4u);
}

TEST_F(RelayBookTest, AThousandHostsMakeATreeOfFiveLevels) {
  std::map<std::uint32_t, int> depth{{0, 0}};
  int deepest = 0;
  for (std::uint32_t number = 1; number <= 1000; ++number) {
    const std::uint32_t parent = ask(number, number);
    depth[number] = depth.at(parent) + 1;
    deepest = std::max(deepest, depth[number]);
  }
  EXPECT_EQ(book_.copies(content()), 4u);
  EXPECT_EQ(deepest, 5) << "4, 16, 64, 256 and 660";
}

TEST_F(RelayBookTest, ProcessesOfOneHostShareOneCopy) {
  EXPECT_EQ(ask(1, 7), 0u);
  for (std::uint32_t number = 2; number < 40; ++number)
    EXPECT_EQ(ask(number, 7), 1u) << "before the four copies are used up";
  EXPECT_EQ(book_.copies(content()), 1u);
  // Those who read its memory have no copy of their own to give.
  reachable_ = true;
  for (std::uint32_t number = 50; number < 53; ++number)
    EXPECT_EQ(ask(number, number), 0u);
  for (std::uint32_t number = 60; number < 76; ++number) {
    const std::uint32_t parent = ask(number, number);
    EXPECT_TRUE(parent == 1 || parent >= 50) << parent;
  }
}

// A version that takes longer than a receiver waits for a sign.
TEST_F(RelayBookTest, WhoWaitsForTheMemoryOfItsHostStaysWhileBucketsCome) {
  for (std::uint32_t number = 1; number <= 3; ++number)
    EXPECT_EQ(ask(number, number), 0u);
  EXPECT_EQ(ask(4, 1), 1u);
  EXPECT_EQ(ask(5, 1), 1u);
  for (std::uint32_t buckets = 10; buckets < kAll; buckets += 10) {
    now_ += limits::kRelaySilent;
    for (std::uint32_t number = 1; number <= 3; ++number)
      book_.progress(number, buckets, now_);
    EXPECT_EQ(ask(4, 1, 0, 1, RelayFault::kSilent), 1u) << buckets;
    EXPECT_EQ(ask(5, 1, 0, 1, RelayFault::kSilent), 1u) << buckets;
  }
  EXPECT_EQ(book_.copies(content()), 3u);
  now_ += limits::kRelayStuck;
  EXPECT_NE(ask(4, 1, 0, 1, RelayFault::kSilent), 1u) << "it has not moved for long";
}

TEST_F(RelayBookTest, HostsThatNobodyReachesComeToThePublisher) {
  reachable_ = false;
  for (std::uint32_t number = 1; number <= 10; ++number)
    EXPECT_EQ(ask(number, number), 0u);
}

class FullBook : public RelayBookTest {
 protected:
  FullBook() {  // 1 to 4 are fed by the publisher
    for (std::uint32_t number = 1; number <= 4; ++number)
      EXPECT_EQ(ask(number, number), 0u);
  }
};

TEST_F(FullBook, ALostRelayIsLeftForOneThatHasMore) {
  const std::uint32_t parent = ask(5, 5);
  ASSERT_NE(parent, 0u);
  book_.progress(5, 30, now_);
  for (std::uint32_t number = 1; number <= 4; ++number)
    book_.progress(number, number == parent ? 40 : number == 4 || parent == 4 ? 35 : 20, now_);
  const std::uint32_t next = ask(5, 5, 30, parent, RelayFault::kLost);
  EXPECT_NE(next, 0u);
  EXPECT_NE(next, parent);
  EXPECT_NE(ask(6, 6), parent) << "nobody is sent to a lost one";
}

TEST_F(FullBook, WithoutAnotherThePublisherServesTheRest) {
  const std::uint32_t parent = ask(5, 5);
  for (std::uint32_t number = 1; number <= 5; ++number)
    book_.progress(number, 30, now_);
  EXPECT_EQ(ask(5, 5, 30, parent, RelayFault::kLost), 0u) << "none has more than 30";
}

TEST_F(FullBook, ASlowRelayIsKeptWhileItGetsBucketsItself) {
  const std::uint32_t parent = ask(5, 5);
  for (std::uint32_t buckets = 1; buckets < 30; ++buckets) {
    now_ += seconds(1);
    for (std::uint32_t number = 1; number <= 5; ++number)
      book_.progress(number, buckets, now_);
    EXPECT_EQ(ask(5, 5, buckets, parent, RelayFault::kSilent), parent) << buckets;
  }
  book_.progress(parent == 2 ? 3 : 2, 80, now_);
  EXPECT_EQ(ask(5, 5, 29, parent, RelayFault::kSilent), parent == 2 ? 3u : 2u)
      << "another has more";
}

TEST_F(FullBook, ASilentRelayThatHoldsBucketsBackOrGetsNoneIsLeft) {
  const std::uint32_t parent = ask(5, 5);
  for (std::uint32_t number = 1; number <= 5; ++number)
    book_.progress(number, 10, now_);
  now_ += limits::kRelayStuck;
  EXPECT_EQ(ask(5, 5, 10, parent, RelayFault::kSilent), 0u) << "it has not moved for long";
  const std::uint32_t other = ask(6, 6);
  ASSERT_NE(other, 0u);
  book_.progress(other, 11, now_);
  book_.progress(6, 10, now_);
  EXPECT_NE(ask(6, 6, 10, other, RelayFault::kSilent), other) << "it has more than it gives";
  EXPECT_NE(ask(7, 7), other);
}

TEST_F(FullBook, WrongBytesSetARelayAsideForItsReceiverAndTwiceForAll) {
  const std::uint32_t parent = ask(5, 5);
  EXPECT_NE(ask(5, 5, 3, parent, RelayFault::kWrong), parent);
  EXPECT_FALSE(book_.is_set_aside(parent));
  version_ = 2;
  for (std::uint32_t number = 1; number <= 4; ++number)
    ask(number, number);
  for (int i = 0; i < 4; ++i)
    EXPECT_NE(ask(5, 5), parent) << "in no later version either";
  ask(6, 6);
  EXPECT_NE(ask(6, 6, 0, parent, RelayFault::kWrong), parent);
  EXPECT_TRUE(book_.is_set_aside(parent));
  for (std::uint32_t number = 20; number < 30; ++number)
    EXPECT_NE(ask(number, number), parent);
  book_.leave(6, turn_);
  EXPECT_TRUE(book_.is_set_aside(parent)) << "the turn was not its latest";
}

// It has begun a newer version, and ended what it gave of the older one.
TEST_F(FullBook, ARelayThatGaveUpAnOlderVersionFeedsInTheNewerOneUntilItIsLostThere) {
  std::map<std::uint32_t, std::uint32_t> parents;
  for (std::uint32_t number = 5; number <= 20; ++number)
    parents[number] = ask(number, number);
  version_ = 2;
  for (std::uint32_t number = 1; number <= 4; ++number)
    EXPECT_EQ(ask(number, number), 0u);
  std::map<std::uint32_t, int> children;
  for (const auto& [number, parent] : parents)
    ++children[ask(number, number, 0, parent, RelayFault::kLost)];
  EXPECT_EQ(children, (std::map<std::uint32_t, int>{{1, 4}, {2, 4}, {3, 4}, {4, 4}}));
  EXPECT_EQ(book_.copies(content()), 4u);
  EXPECT_NE(ask(5, 5, 0, 1, RelayFault::kLost), 1u);
  for (std::uint32_t number = 21; number <= 40; ++number)
    EXPECT_NE(ask(number, number), 1u) << "in this version it was lost";
}

TEST_F(FullBook, WrongBytesOfAnOlderVersionCountInTheNewerOne) {
  const std::uint32_t parent = ask(5, 5);
  version_ = 2;
  for (std::uint32_t number = 1; number <= 4; ++number)
    ask(number, number);
  EXPECT_NE(ask(5, 5, 0, parent, RelayFault::kWrong), parent);
  EXPECT_NE(ask(5, 5), parent);
}

TEST_F(FullBook, AWorkingRelayIsLeftForOneThatIsFarAheadAndFeedsFewerAndNeverAgain) {
  const std::uint32_t parent = ask(5, 5);
  book_.progress(parent, 60, now_);
  book_.progress(5, 20, now_);
  EXPECT_EQ(ask(5, 5, 20, parent, RelayFault::kSlow), parent) << "no other has begun";
  const std::uint32_t other = parent == 2 ? 3 : 2;
  book_.progress(other, 25, now_);
  EXPECT_EQ(ask(5, 5, 20, parent, RelayFault::kSlow), parent) << "not far ahead";
  book_.progress(other, kAll, now_);
  EXPECT_EQ(ask(5, 5, 22, parent, RelayFault::kSlow), other);
  EXPECT_EQ(ask(5, 5, 30, other, RelayFault::kSlow), other) << "the first feeds nobody now";
  EXPECT_EQ(book_.copies(content()), 4u);
}

TEST_F(FullBook, OneWhoseRelayHasNoMoreThanItselfMovesToAnyThatIsFarAhead) {
  const std::uint32_t parent = ask(5, 5);
  const std::uint32_t other = parent == 2 ? 3 : 2;
  for (std::uint32_t number = 6; number < 20 && book_.size() < 9; ++number)
    ask(number, number);
  book_.progress(parent, 10, now_);
  book_.progress(5, 10, now_);
  book_.progress(other, 90, now_);
  EXPECT_EQ(ask(5, 5, 10, parent, RelayFault::kSlow), other);
}

// Random lives: nobody is ever fed by one that it feeds, directly or not.
TEST_F(RelayBookTest, NobodyFeedsItself) {
  core::Rng rng(3);
  std::map<std::uint32_t, std::uint32_t> parents;
  std::map<std::uint32_t, std::uint32_t> have;
  for (int i = 0; i < 20'000; ++i) {
    const auto number = static_cast<std::uint32_t>(1 + rng.next_below(30));
    now_ += std::chrono::milliseconds(rng.next_below(300));
    const std::uint32_t parent = parents.count(number) != 0 ? parents[number] : 0;
    if (rng.next_below(3) == 0 || parents.count(number) == 0) {
      const auto fault = static_cast<RelayFault>(1 + rng.next_below(4));
      parents[number] =
          ask(number, number % 20, have[number], parent, parent == 0 ? RelayFault::kNone : fault);
    } else if (parent == 0 || have[parent] > have[number]) {
      have[number] = std::min(kAll, have[number] + 5);
      book_.progress(number, have[number], now_);
    }
    std::set<std::uint32_t> above{number};
    for (std::uint32_t next = parents[number]; next != 0; next = parents[next])
      ASSERT_TRUE(above.insert(next).second) << "a circle at " << next;
  }
  EXPECT_EQ(book_.size(), 30u);
}

TEST_F(RelayBookTest, WhoHasLeftIsForgotten) {
  EXPECT_EQ(ask(1, 1), 0u);
  const std::uint64_t turn = turn_;
  EXPECT_EQ(ask(2, 1), 1u);
  book_.leave(1, turn);
  EXPECT_EQ(book_.size(), 1u);
  EXPECT_EQ(ask(3, 1), 0u) << "2 reads the memory of 1";
}

}  // namespace
}  // namespace troupe::weights
