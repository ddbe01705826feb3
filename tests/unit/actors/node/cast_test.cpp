// Who plays what, and when a lost role is started again.
#include "actors/node/cast.hpp"

#include "runtime/core/limits.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;

core::TimePoint at(std::int64_t ms) {
  return core::TimePoint(milliseconds(ms));
}
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
  cast.want("policy", "policy/0", "");
  cast.node_in("node/a", {"policy"});
  std::int64_t now = 0;
  for (std::uint64_t i = 1; i <= core::limits::kRestarts_max; ++i) {
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
