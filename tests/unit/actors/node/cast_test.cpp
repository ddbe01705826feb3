// Who plays what, and when a lost role is started again.
#include "actors/node/cast.hpp"

#include "actors/limits.hpp"
#include "tests/unit/actors/node/time_support.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;

const core::Error kCause{core::ErrorCode::kPeerLost, "killed"};

TEST(Cast, StartsARoleOnTheNodeItIsBoundTo) {
  Cast cast;
  cast.want("generator", "generator/0", "node/gen0");
  cast.node_in("node/gen1", {"generator"});
  EXPECT_TRUE(cast.start_due(at(0)).empty());
  cast.node_in("node/gen0", {"generator"});
  const auto due = cast.start_due(at(0));
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].node, "node/gen0");
  EXPECT_EQ(due[0].epoch, 1u);
  EXPECT_TRUE(cast.start_due(at(0)).empty()) << "a role that is starting is not started twice";
  EXPECT_FALSE(cast.all_up("generator"));
  EXPECT_TRUE(cast.up("generator/0", 1));
  EXPECT_TRUE(cast.all_up("generator"));
}

TEST(Cast, AnUnboundRoleGoesToTheNodeThatPlaysLeast) {
  Cast cast;
  cast.node_in("node/a", {"reward"});
  cast.node_in("node/b", {"reward", "reference"});
  cast.want("reference", "reference/0", "");
  ASSERT_EQ(cast.start_due(at(0)).front().node, "node/b");
  cast.want("reward", "reward/0", "");
  EXPECT_EQ(cast.start_due(at(0)).front().node, "node/a");
}

TEST(Cast, ALostRoleComesBackLaterEachTimeWithANewEpoch) {
  Cast cast;
  cast.want("reward", "reward/0", "");
  cast.node_in("node/a", {"reward"});
  std::int64_t now = 0;
  for (const std::int64_t wait : {100, 200, 400, 800}) {
    const auto due = cast.start_due(at(now));
    ASSERT_EQ(due.size(), 1u);
    ASSERT_TRUE(cast.up("reward/0", due[0].epoch));
    ASSERT_TRUE(cast.lost("reward/0", due[0].epoch, kCause, at(now)));
    EXPECT_TRUE(cast.start_due(at(now + wait - 1)).empty()) << wait;
    now += wait;
  }
  EXPECT_EQ(cast.start_due(at(now)).front().epoch, 5u);
}

TEST(Cast, NewsOfAnEarlierEpochChangesNothing) {
  Cast cast;
  cast.want("reward", "reward/0", "");
  cast.node_in("node/a", {"reward"});
  cast.start_due(at(0));
  ASSERT_TRUE(cast.lost("reward/0", 1, kCause, at(0)));
  EXPECT_FALSE(cast.lost("reward/0", 1, kCause, at(0)));
  cast.start_due(at(1'000));
  EXPECT_FALSE(cast.up("reward/0", 1));
  EXPECT_FALSE(cast.lost("reward/0", 1, kCause, at(1'000)));
  EXPECT_TRUE(cast.up("reward/0", 2));
}

TEST(Cast, ANodeTakesItsRolesWithIt) {
  Cast cast;
  cast.want("policy", "policy/0", "node/a");
  cast.want("reward", "reward/0", "node/a");
  cast.want("reference", "reference/0", "node/b");
  cast.node_in("node/a", {"policy", "reward"});
  cast.node_in("node/b", {"reference"});
  for (const auto& part : cast.start_due(at(0))) {
    if (part.name != "reward/0") ASSERT_TRUE(cast.up(part.name, part.epoch));
  }
  // The reward was still starting: nobody had been told that it is up.
  EXPECT_EQ(cast.node_out("node/a", kCause, at(10)), std::vector<std::string>{"policy/0"});
  EXPECT_EQ(cast.find("reference/0")->state, PartState::kUp);
  EXPECT_TRUE(cast.start_due(at(10'000)).empty()) << "no node offers them any more";
  cast.node_in("node/a", {"policy", "reward"});
  EXPECT_EQ(cast.start_due(at(10'000)).size(), 2u);
}

TEST(Cast, GivesUpOnARoleThatIsLostTooOftenInAShortTime) {
  Cast cast;
  cast.want("policy", "policy/0", "node/a");
  cast.node_in("node/a", {"policy"});
  std::int64_t now = 0;
  for (std::uint64_t i = 1; i <= limits::kRestarts_max; ++i) {
    EXPECT_FALSE(cast.hopeless(at(now))) << i;
    cast.start_due(at(now));
    ASSERT_TRUE(cast.lost("policy/0", i, kCause, at(now)));
    now += 6'000;
  }
  const auto part = cast.hopeless(at(now - 6'000));
  ASSERT_TRUE(part);
  EXPECT_EQ(part->last_cause, "killed");
  EXPECT_FALSE(cast.hopeless(at(now + 600'000))) << "long ago does not count";
}

// Lost as often as wears a role out, all within the window; the time of the last loss.
std::int64_t wear_out(Cast& cast, const std::string& name, std::int64_t now) {
  for (std::uint64_t i = 0; i < limits::kRestarts_max; ++i) {
    now += 6'000;
    cast.start_due(at(now));
    EXPECT_TRUE(cast.lost(name, cast.find(name)->epoch, kCause, at(now)));
  }
  return now;
}

TEST(Cast, AWornGeneratorRestsWhileThereIsAnotherAndEndsTheRunWhenThereIsNone) {
  Cast cast;
  cast.want("generator", "generator/0", "node/a");
  cast.want("generator", "generator/1", "node/b", true);
  cast.node_in("node/a", {"generator"});
  cast.node_in("node/b", {"generator"});
  const std::int64_t now = wear_out(cast, "generator/0", 0);
  EXPECT_FALSE(cast.hopeless(at(now)));
  wear_out(cast, "generator/1", 0);
  const auto part = cast.hopeless(at(now));
  ASSERT_TRUE(part);
  EXPECT_EQ(part->name, "generator/0") << "a guest's role ends no run";
  EXPECT_TRUE(cast.start_due(at(now + 59'999)).empty());
  EXPECT_EQ(cast.start_due(at(now + 60'000)).size(), 2u);
}

TEST(Cast, ARoleThatAnyNodeMayPlayIsWaitedForHoweverOftenItIsLost) {
  Cast cast;
  cast.want("reference", "reference/0", "");
  cast.node_in("node/a", {"reference"});
  const std::int64_t now = wear_out(cast, "reference/0", 0);
  EXPECT_FALSE(cast.hopeless(at(now)));
  EXPECT_TRUE(cast.start_due(at(now + 59'999)).empty());
  EXPECT_EQ(cast.start_due(at(now + 60'000)).size(), 1u);
}

TEST(Cast, AStruckNodeIsPassedOverForThatKindUntilItComesInAnew) {
  Cast cast;
  cast.want("reference", "reference/0", "");
  cast.want("reward", "reward/0", "");
  cast.node_in("node/a", {"reference", "reward"});
  cast.strike("node/a", "reference", core::TimePoint::max());
  const auto due = cast.start_due(at(0));
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].name, "reward/0");
  EXPECT_FALSE(cast.has_candidate("reference"));
  cast.node_in("node/b", {"reference"});
  EXPECT_TRUE(cast.has_candidate("reference"));
  cast.strike("node/b", "reference", at(500));
  EXPECT_TRUE(cast.has_candidate("reference")) << "later";
  EXPECT_TRUE(cast.start_due(at(499)).empty());
  ASSERT_EQ(cast.start_due(at(500)).front().node, "node/b");
  cast.node_out("node/b", kCause, at(600));
  cast.node_out("node/a", kCause, at(600));
  cast.node_in("node/a", {"reference"});
  EXPECT_EQ(cast.start_due(at(2'000)).front().node, "node/a");
}

TEST(Cast, ARoleThatIsBeingStoppedIsNobodysUntilItIsLost) {
  Cast cast;
  cast.want("generator", "generator/0", "");
  cast.node_in("node/a", {"generator"});
  cast.start_due(at(0));
  EXPECT_FALSE(cast.stop("generator/0", 1, kCause)) << "it is not up yet";
  ASSERT_TRUE(cast.up("generator/0", 1));
  EXPECT_FALSE(cast.stop("generator/0", 2, kCause));
  ASSERT_TRUE(cast.stop("generator/0", 1, {core::ErrorCode::kResources, "a device failed"}));
  EXPECT_FALSE(cast.stop("generator/0", 1, kCause));
  EXPECT_TRUE(cast.start_due(at(1'000)).empty());
  ASSERT_TRUE(cast.lost("generator/0", 1, kCause, at(1'000)));
  EXPECT_EQ(cast.find("generator/0")->last_cause, "a device failed") << "what made it be stopped";
  EXPECT_EQ(cast.find("generator/0")->losses.size(), 1u);
  EXPECT_EQ(cast.start_due(at(1'100)).front().epoch, 2u);
}

TEST(Cast, ARoleThatWasTakenDownOnPurposeIsNoLoss) {
  Cast cast;
  cast.want("policy", "policy/0", "");
  cast.node_in("node/a", {"policy"});
  cast.start_due(at(0));
  ASSERT_TRUE(cast.up("policy/0", 1));
  cast.retire("policy/0");
  const auto due = cast.start_due(at(0));
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].epoch, 2u);
  EXPECT_TRUE(due[0].losses.empty());
}

}  // namespace
}  // namespace troupe::actors
