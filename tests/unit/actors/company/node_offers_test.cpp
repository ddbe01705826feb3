// Where a role is placed, by what nodes offer and which of them are not asked.
#include "actors/company/node_offers.hpp"

#include "tests/unit/actors/company/time_support.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::company {
namespace {

PlacedRole role_at(const std::string& name, const std::string& node = "") {
  PlacedRole placed{.kind = "generator", .name = name, .bound = ""};
  placed.node = node;
  placed.state = node.empty() ? RoleState::kWanted : RoleState::kUp;
  return placed;
}

}  // namespace

TEST(NodeOffers, ARoleGoesWhereTheFewestAreOfThoseThatOfferItsKind) {
  NodeOffers offers;
  offers.add("node/a", {"generator"});
  offers.add("node/b", {"reward", "generator"});
  offers.add("node/c", {"reward"});
  PlacedRoles roles{{"generator/0", role_at("generator/0", "node/a")},
                    {"generator/1", role_at("generator/1")}};
  const PlacedRole& wanted = roles.at("generator/1");
  EXPECT_EQ(offers.place_for(wanted, roles, at(0)), "node/b");
  EXPECT_EQ(offers.place_for(wanted, roles, at(0), {"node/b"}), "node/a");
  EXPECT_EQ(offers.place_for(wanted, roles, at(0), {"node/a", "node/b"}), "");
  roles.at("generator/0").state = RoleState::kWanted;  // it plays nowhere now
  EXPECT_EQ(offers.place_for(wanted, roles, at(0)), "node/a");
}

TEST(NodeOffers, ABoundRoleWaitsForItsNode) {
  NodeOffers offers;
  offers.add("node/a", {"generator"});
  PlacedRole bound = role_at("generator/0");
  bound.bound = "node/b";
  EXPECT_EQ(offers.place_for(bound, {}, at(0)), "");
  offers.add("node/b", {"generator"});
  EXPECT_EQ(offers.place_for(bound, {}, at(0)), "node/b");
}

TEST(NodeOffers, AStruckNodeIsACandidateUnlessItIsStruckForGood) {
  NodeOffers offers;
  offers.add("node/a", {"generator", "reward"});
  offers.strike("node/a", "generator", at(50));
  EXPECT_TRUE(offers.has_candidate("generator", ""));
  EXPECT_FALSE(offers.has_candidate("generator", "node/a"));
  EXPECT_EQ(offers.place_for(role_at("generator/0"), {}, at(49)), "");
  EXPECT_EQ(offers.place_for(role_at("generator/0"), {}, at(50)), "node/a");
  offers.strike("node/a", "generator", core::TimePoint::max());
  EXPECT_FALSE(offers.has_candidate("generator", ""));
  EXPECT_TRUE(offers.has_candidate("reward", ""));
  offers.remove("node/a");
  offers.add("node/a", {"generator"});
  EXPECT_TRUE(offers.has_candidate("generator", ""));
}

TEST(NodeOffers, ADrainedNodeGetsNothingUntilItJoinsAgain) {
  NodeOffers offers;
  offers.add("node/a", {"generator"});
  offers.drain("node/a");
  EXPECT_FALSE(offers.has_candidate("generator", ""));
  EXPECT_EQ(offers.place_for(role_at("generator/0"), {}, at(0)), "");
  offers.add("node/a", {"generator"});
  EXPECT_EQ(offers.place_for(role_at("generator/0"), {}, at(0)), "node/a");
}

}  // namespace troupe::actors::company
