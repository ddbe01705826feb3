// Who plays what, and when a lost role is started again.
#include "actors/company/role_placement.hpp"

#include "actors/company/limits.hpp"
#include "runtime/core/ids.hpp"
#include "tests/unit/actors/company/time_support.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::company {
namespace {

using std::chrono::milliseconds;

const core::Error kCause{core::ErrorCode::kPeerLost, "killed"};

TEST(RolePlacement, StartsARoleOnTheNodeItIsBoundTo) {
  RolePlacement placement;
  placement.want("generator", "generator/0", "node/gen0");
  placement.node_in("node/gen1", {"generator"});
  EXPECT_TRUE(placement.start_due(at(0)).empty());
  placement.node_in("node/gen0", {"generator"});
  const auto due = placement.start_due(at(0));
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].node, "node/gen0");
  EXPECT_EQ(due[0].epoch, 1u);
  EXPECT_TRUE(placement.start_due(at(0)).empty()) << "a role that is starting is not started twice";
  EXPECT_FALSE(placement.all_up("generator"));
  EXPECT_TRUE(placement.up("generator/0", 1));
  EXPECT_TRUE(placement.all_up("generator"));
}

TEST(RolePlacement, TakesOverARoleOfAnEarlierHead) {
  RolePlacement placement(3);
  placement.want("policy", "policy/0", "node/policy");
  placement.want("reward", "reward/0", "");
  const std::uint64_t old = core::first_epoch(2) + 4;
  EXPECT_FALSE(placement.adopt("policy/0", "node/other", old)) << "it is bound elsewhere";
  EXPECT_FALSE(placement.adopt("critic/0", "node/policy", old)) << "nobody wants it";
  EXPECT_FALSE(placement.adopt("policy/0", "node/policy", core::first_epoch(3) + 1))
      << "no earlier head has started it";
  ASSERT_TRUE(placement.adopt("policy/0", "node/policy", old));
  placement.node_in("node/policy", {"policy", "reward"});
  const auto due = placement.start_due(at(0));
  ASSERT_EQ(due.size(), 1u) << "the policy is not started again";
  EXPECT_EQ(due[0].epoch, core::first_epoch(3) + 1);
  EXPECT_TRUE(placement.up("policy/0", old));
  EXPECT_FALSE(placement.adopt("policy/0", "node/policy", old + 1)) << "it is up";
  ASSERT_TRUE(placement.lost("policy/0", old, kCause, at(0)));
  EXPECT_FALSE(placement.adopt("policy/0", "node/policy", old)) << "that start is over";
  EXPECT_EQ(placement.start_due(at(1000)).front().epoch, core::first_epoch(3) + 1);
}

TEST(RolePlacement, AnUnboundRoleGoesToTheNodeThatPlaysLeast) {
  RolePlacement placement;
  placement.node_in("node/a", {"reward"});
  placement.node_in("node/b", {"reward", "reference"});
  placement.want("reference", "reference/0", "");
  ASSERT_EQ(placement.start_due(at(0)).front().node, "node/b");
  placement.want("reward", "reward/0", "");
  EXPECT_EQ(placement.start_due(at(0)).front().node, "node/a");
}

TEST(RolePlacement, ALostRoleComesBackLaterEachTimeWithANewEpoch) {
  RolePlacement placement;
  placement.want("reward", "reward/0", "");
  placement.node_in("node/a", {"reward"});
  std::int64_t now = 0;
  for (const std::int64_t wait : {100, 200, 400, 800}) {
    const auto due = placement.start_due(at(now));
    ASSERT_EQ(due.size(), 1u);
    ASSERT_TRUE(placement.up("reward/0", due[0].epoch));
    ASSERT_TRUE(placement.lost("reward/0", due[0].epoch, kCause, at(now)));
    EXPECT_TRUE(placement.start_due(at(now + wait - 1)).empty()) << wait;
    now += wait;
  }
  EXPECT_EQ(placement.start_due(at(now)).front().epoch, 5u);
}

// 100 ms after the first time, then no two starts within 10 s, 20 s, ..., 300 s; the old pace again
// after ten healthy minutes. Being sick does not wear a role out.
TEST(RolePlacement, ASickRoleIsStartedAgainEverMoreRarely) {
  RolePlacement placement;
  placement.want("generator", "generator/0", "node/a");
  placement.node_in("node/a", {"generator"});
  std::int64_t now = 0;
  const auto fall_sick_until = [&](std::int64_t start) {
    const auto due = placement.start_due(at(now));
    ASSERT_EQ(due.size(), 1u);
    const std::uint64_t epoch = due[0].epoch;
    ASSERT_TRUE(placement.up("generator/0", epoch));
    ASSERT_TRUE(placement.stop("generator/0", epoch, {core::ErrorCode::kResources, "sick"}));
    ASSERT_TRUE(placement.lost("generator/0", epoch, kCause, at(now)));
    EXPECT_TRUE(placement.start_due(at(start - 1)).empty()) << start;
    EXPECT_FALSE(placement.hopeless(at(now))) << start;
    EXPECT_EQ(placement.find("generator/0")->last_cause, "sick");
    now = start;
  };
  fall_sick_until(100);
  fall_sick_until(10'000);
  fall_sick_until(30'000);
  fall_sick_until(70'000);
  fall_sick_until(150'000);
  fall_sick_until(310'000);
  fall_sick_until(610'000);  // the longest pause
  fall_sick_until(910'000);
  now = 1'600'000;
  fall_sick_until(1'600'100);
}

// What a ticket did to it does not count: it starts at once, and at the old pace.
TEST(RolePlacement, AClearedRoleNeedNotWait) {
  RolePlacement placement;
  placement.want("generator", "generator/0", "node/a");
  placement.node_in("node/a", {"generator"});
  std::int64_t now = 0;
  const auto fall = [&](bool sick) {
    const auto due = placement.start_due(at(now));
    ASSERT_EQ(due.size(), 1u);
    ASSERT_TRUE(placement.up("generator/0", due[0].epoch));
    if (sick) {
      ASSERT_TRUE(placement.stop("generator/0", due[0].epoch, kCause));
    }
    ASSERT_TRUE(placement.lost("generator/0", due[0].epoch, kCause, at(now)));
  };
  fall(true);
  now = 100;
  fall(true);
  EXPECT_TRUE(placement.start_due(at(9'999)).empty());
  placement.clear("generator/0");
  now = 200;
  fall(true);
  EXPECT_TRUE(placement.start_due(at(299)).empty());
  now = 300;
  for (int i = 0; i < 20; ++i) {
    fall(false);
    placement.clear("generator/0");
    EXPECT_FALSE(placement.hopeless(at(now)));
  }
  EXPECT_EQ(placement.start_due(at(now)).size(), 1u);
  placement.clear("reward/9");  // not wanted
}

TEST(RolePlacement, NewsOfAnEarlierEpochChangesNothing) {
  RolePlacement placement;
  placement.want("reward", "reward/0", "");
  placement.node_in("node/a", {"reward"});
  placement.start_due(at(0));
  ASSERT_TRUE(placement.lost("reward/0", 1, kCause, at(0)));
  EXPECT_FALSE(placement.lost("reward/0", 1, kCause, at(0)));
  placement.start_due(at(1'000));
  EXPECT_FALSE(placement.up("reward/0", 1));
  EXPECT_FALSE(placement.lost("reward/0", 1, kCause, at(1'000)));
  EXPECT_TRUE(placement.up("reward/0", 2));
}

TEST(RolePlacement, ANodeTakesItsRolesWithIt) {
  RolePlacement placement;
  placement.want("policy", "policy/0", "node/a");
  placement.want("reward", "reward/0", "node/a");
  placement.want("reference", "reference/0", "node/b");
  placement.node_in("node/a", {"policy", "reward"});
  placement.node_in("node/b", {"reference"});
  for (const auto& placed : placement.start_due(at(0))) {
    if (placed.name == "reward/0") continue;
    ASSERT_TRUE(placement.up(placed.name, placed.epoch));
  }
  // The reward was still starting: nobody had been told that it is up.
  EXPECT_EQ(placement.node_out("node/a", kCause, at(10)), std::vector<std::string>{"policy/0"});
  EXPECT_EQ(placement.find("reference/0")->state, RoleState::kUp);
  EXPECT_TRUE(placement.start_due(at(10'000)).empty()) << "no node offers them any more";
  placement.node_in("node/a", {"policy", "reward"});
  EXPECT_EQ(placement.start_due(at(10'000)).size(), 2u);
}

TEST(RolePlacement, GivesUpOnARoleThatIsLostTooOftenInAShortTime) {
  RolePlacement placement;
  placement.want("policy", "policy/0", "node/a");
  placement.node_in("node/a", {"policy"});
  std::int64_t now = 0;
  for (std::uint64_t i = 1; i <= limits::kRestarts_max; ++i) {
    EXPECT_FALSE(placement.hopeless(at(now))) << i;
    placement.start_due(at(now));
    ASSERT_TRUE(placement.lost("policy/0", i, kCause, at(now)));
    now += 6'000;
  }
  const auto placed = placement.hopeless(at(now - 6'000));
  ASSERT_TRUE(placed);
  EXPECT_EQ(placed->last_cause, "killed");
  EXPECT_FALSE(placement.hopeless(at(now + 600'000))) << "long ago does not count";
}

// A role is lost with its link; why its process ended is known a moment later.
TEST(RolePlacement, TheEndOfAProcessExplainsTheLossOfItsRoles) {
  RolePlacement placement;
  placement.want("policy", "policy/0", "node/a");
  placement.want("reward", "reward/0", "node/b");
  placement.node_in("node/a", {"policy"});
  placement.node_in("node/b", {"reward"});
  placement.start_due(at(0));
  const core::Error killed{core::ErrorCode::kResources, "killed for want of memory"};
  placement.explain("node/a", killed);
  EXPECT_EQ(placement.find("policy/0")->last_cause, "") << "it is not lost";
  ASSERT_TRUE(placement.lost("policy/0", 1, kCause, at(1)));
  EXPECT_EQ(placement.find("policy/0")->last_code, kCause.code);
  placement.explain("node/a", killed);
  EXPECT_EQ(placement.find("policy/0")->last_cause, "killed for want of memory");
  EXPECT_EQ(placement.find("policy/0")->last_code, core::ErrorCode::kResources);
  EXPECT_EQ(placement.find("reward/0")->last_code, core::ErrorCode::kPeerLost);
}

// Lost as often as wears a role out, all within the window; the time of the last loss.
std::int64_t wear_out(RolePlacement& placement, const std::string& name, std::int64_t now) {
  for (std::uint64_t i = 0; i < limits::kRestarts_max; ++i) {
    now += 6'000;
    placement.start_due(at(now));
    EXPECT_TRUE(placement.lost(name, placement.find(name)->epoch, kCause, at(now)));
  }
  return now;
}

TEST(RolePlacement, AWornGeneratorRestsWhileThereIsAnotherAndEndsTheRunWhenThereIsNone) {
  RolePlacement placement;
  placement.want("generator", "generator/0", "node/a");
  placement.want("generator", "generator/1", "node/b", true);
  placement.node_in("node/a", {"generator"});
  placement.node_in("node/b", {"generator"});
  const std::int64_t now = wear_out(placement, "generator/0", 0);
  EXPECT_FALSE(placement.hopeless(at(now)));
  wear_out(placement, "generator/1", 0);
  const auto placed = placement.hopeless(at(now));
  ASSERT_TRUE(placed);
  EXPECT_EQ(placed->name, "generator/0") << "a guest's role ends no run";
  EXPECT_TRUE(placement.start_due(at(now + 59'999)).empty());
  EXPECT_EQ(placement.start_due(at(now + 60'000)).size(), 2u);
}

TEST(RolePlacement, ARoleThatAnyNodeMayPlayIsWaitedForHoweverOftenItIsLost) {
  RolePlacement placement;
  placement.want("reference", "reference/0", "");
  placement.node_in("node/a", {"reference"});
  const std::int64_t now = wear_out(placement, "reference/0", 0);
  EXPECT_FALSE(placement.hopeless(at(now)));
  EXPECT_TRUE(placement.start_due(at(now + 59'999)).empty());
  EXPECT_EQ(placement.start_due(at(now + 60'000)).size(), 1u);
}

TEST(RolePlacement, AStruckNodeIsPassedOverForThatKindUntilItComesInAnew) {
  RolePlacement placement;
  placement.want("reference", "reference/0", "");
  placement.want("reward", "reward/0", "");
  placement.node_in("node/a", {"reference", "reward"});
  placement.strike("node/a", "reference", core::TimePoint::max());
  const auto due = placement.start_due(at(0));
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].name, "reward/0");
  EXPECT_FALSE(placement.has_candidate("reference"));
  placement.node_in("node/b", {"reference"});
  EXPECT_TRUE(placement.has_candidate("reference"));
  placement.strike("node/b", "reference", at(500));
  EXPECT_TRUE(placement.has_candidate("reference")) << "later";
  EXPECT_TRUE(placement.start_due(at(499)).empty());
  ASSERT_EQ(placement.start_due(at(500)).front().node, "node/b");
  placement.node_out("node/b", kCause, at(600));
  placement.node_out("node/a", kCause, at(600));
  placement.node_in("node/a", {"reference"});
  EXPECT_EQ(placement.start_due(at(2'000)).front().node, "node/a");
}

TEST(RolePlacement, ARoleThatIsBeingStoppedIsNobodysUntilItIsLost) {
  RolePlacement placement;
  placement.want("generator", "generator/0", "");
  placement.node_in("node/a", {"generator"});
  placement.start_due(at(0));
  EXPECT_FALSE(placement.stop("generator/0", 1, kCause)) << "it is not up yet";
  ASSERT_TRUE(placement.up("generator/0", 1));
  EXPECT_FALSE(placement.stop("generator/0", 2, kCause));
  ASSERT_TRUE(placement.stop("generator/0", 1, {core::ErrorCode::kResources, "a device failed"}));
  EXPECT_FALSE(placement.stop("generator/0", 1, kCause));
  EXPECT_TRUE(placement.start_due(at(1'000)).empty());
  ASSERT_TRUE(placement.lost("generator/0", 1, kCause, at(1'000)));
  EXPECT_EQ(placement.find("generator/0")->last_cause, "a device failed")
      << "what made it be stopped";
  EXPECT_EQ(placement.find("generator/0")->losses.size(), 0u) << "it was not lost";
  EXPECT_EQ(placement.start_due(at(1'100)).front().epoch, 2u);
}

TEST(RolePlacement, ARoleThatWasTakenDownOnPurposeIsNoLoss) {
  RolePlacement placement;
  placement.want("policy", "policy/0", "");
  placement.node_in("node/a", {"policy"});
  placement.start_due(at(0));
  ASSERT_TRUE(placement.up("policy/0", 1));
  placement.retire("policy/0");
  const auto due = placement.start_due(at(0));
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].epoch, 2u);
  EXPECT_TRUE(due[0].losses.empty());
}

// Between two sessions.
TEST(RolePlacement, RolesThatTheRunHasStoppedAreNoLossAndStartAtOnceUnlessTheyAreSick) {
  RolePlacement placement;
  for (const char* const kind : {"generator", "policy", "reference", "reward"})
    placement.want(kind, std::string(kind) + "/0", "node/a");
  placement.node_in("node/a", {"generator", "policy", "reference"});
  placement.start_due(at(0));
  ASSERT_TRUE(placement.up("policy/0", 1) && placement.up("reference/0", 1));
  ASSERT_TRUE(placement.stop("reference/0", 1, {core::ErrorCode::kResources, "a device failed"}));
  const auto stopped = placement.stop_all();
  ASSERT_EQ(stopped.size(), 3u) << "the reward has not been started";
  EXPECT_EQ(stopped[0].state, RoleState::kStarting);
  EXPECT_EQ(stopped[1].state, RoleState::kUp);
  EXPECT_EQ(stopped[2].state, RoleState::kStopping);
  EXPECT_FALSE(placement.up("generator/0", 1)) << "its start is over";
  EXPECT_TRUE(placement.start_due(at(1'000)).empty());
  for (const PlacedRole& role : stopped)
    ASSERT_TRUE(placement.lost(role.name, role.epoch, kCause, at(1'000)));
  EXPECT_EQ(placement.start_due(at(1'000)).size(), 2u);
  EXPECT_EQ(placement.start_due(at(1'100)).front().name, "reference/0");
  for (const auto& [name, role] : placement.roles())
    EXPECT_TRUE(role.losses.empty()) << name;
}

}  // namespace
}  // namespace troupe::actors::company
