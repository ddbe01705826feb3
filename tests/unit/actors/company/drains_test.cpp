// Which node may leave, and which process is told to go again.
#include "actors/company/drains.hpp"

#include "tests/unit/actors/company/time_support.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::company {
namespace {

const core::Error kDrained{core::ErrorCode::kClosed, "it is drained"};

// a: generator/0 and reward/0, b: generator/1, both up.
RolePlacement two_nodes() {
  RolePlacement placement;
  placement.node_in("node/a", {"generator", "reward"});
  placement.node_in("node/b", {"generator"});
  placement.want("generator", "generator/0", "node/a", true);
  placement.want("generator", "generator/1", "node/b", true);
  placement.want("reward", "reward/0", "");
  for (const PlacedRole& due : placement.start_due(at(0)))
    EXPECT_TRUE(placement.up(due.name, due.epoch));
  return placement;
}

Join process(const char* name, std::uint32_t pid) {
  Join join;
  join.name = name;
  join.host_id = "boot";
  join.pid = pid;
  return join;
}

TEST(Drains, TheLastGeneratorAndTheOnlyHostOfARewardStay) {
  RolePlacement placement = two_nodes();
  EXPECT_TRUE(may_leave("node/b", placement, {}));
  EXPECT_FALSE(may_leave("node/a", placement, {})) << "nobody else has the reward";
  placement.node_in("node/c", {"reward"});
  EXPECT_TRUE(may_leave("node/a", placement, {}));
  placement.drain("node/c");
  EXPECT_FALSE(may_leave("node/a", placement, {})) << "c leaves, too";
  placement.drain("node/b");
  placement.node_in("node/c", {"reward"});
  EXPECT_FALSE(may_leave("node/a", placement, {})) << "b leaves, and no other generator is up";
}

TEST(Drains, ARewardThatTheNodeBroughtIsDetachedInstead) {
  const RolePlacement placement = two_nodes();
  const auto may = may_leave("node/reward-x-7", placement, {{"reward/x", "node/reward-x-7"}});
  ASSERT_FALSE(may);
  EXPECT_NE(may.error().message.find("`troupe detach reward --name x`"), std::string::npos);
  EXPECT_TRUE(may_leave("node/b", placement, {{"reward/x", "node/reward-x-7"}}));
}

TEST(Drains, ADrainedNodeGetsNoRoleAndWhatItHadStartsElsewhereAtOnce) {
  RolePlacement placement = two_nodes();
  placement.node_in("node/c", {"reward"});
  placement.drain("node/a");
  ASSERT_TRUE(placement.move("reward/0", 1, kDrained));
  EXPECT_FALSE(placement.move("reward/0", 1, kDrained)) << "it is under way";
  EXPECT_TRUE(placement.start_due(at(5)).empty());
  ASSERT_TRUE(placement.lost("reward/0", 1, kDrained, at(10)));
  const auto due = placement.start_due(at(10));
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].node, "node/c");
  EXPECT_EQ(due[0].epoch, 2u);
  EXPECT_FALSE(due[0].sick);
  EXPECT_TRUE(due[0].losses.empty());
  placement.node_in("node/a", {"reward"});
  EXPECT_FALSE(placement.is_drained("node/a")) << "it has joined again";
}

TEST(Drains, AProcessThatWasToldToGoIsKnownAndAnotherOfItsNameIsNot) {
  Drains drains;
  EXPECT_FALSE(drains.is_back(process("node/a", 7)));
  drains.begin("node/a", process("node/a", 7));
  EXPECT_TRUE(drains.knows("node/a") && drains.is_draining("node/a"));
  EXPECT_FALSE(drains.is_expected("node/a")) << "its end would be a loss";
  drains.dismissed("node/a");
  EXPECT_TRUE(drains.is_expected("node/a"));
  EXPECT_FALSE(drains.is_gone("node/a"));
  drains.done("node/a");
  EXPECT_TRUE(drains.is_gone("node/a"));
  EXPECT_TRUE(drains.is_back(process("node/a", 7)));
  EXPECT_FALSE(drains.is_back(process("node/a", 8)));
  EXPECT_FALSE(drains.is_back(process("node/b", 7)));
  drains.forget("node/a");
  EXPECT_FALSE(drains.knows("node/a"));
  EXPECT_FALSE(drains.is_back(process("node/a", 7)));
}

}  // namespace
}  // namespace troupe::actors::company
