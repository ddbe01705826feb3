// Silence, and what it means: told by hand, second by second.
#include "actors/company/membership.hpp"

#include "tests/unit/actors/company/time_support.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::company {
namespace {

Beat beat_of(const std::string& node) {
  Beat beat;
  beat.node = node;
  return beat;
}

using std::chrono::milliseconds;

Join node(const std::string& name) {
  Join join;
  join.name = name;
  join.arithmetic = "exact-f32";
  join.build = "1.0";
  return join;
}

class MembershipTest : public ::testing::Test {
 protected:
  // Looks every 100 ms up to `until`; beats of `beating` come every 250 ms.
  std::vector<Membership::Change> pass(std::int64_t from,
                                       std::int64_t until,
                                       const std::vector<std::string>& beating) {
    std::vector<Membership::Change> changes;
    for (std::int64_t now = from; now <= until; now += 50) {
      if (now % 250 == 0) {
        for (const auto& name : beating)
          members.beat(beat_of(name), at(now));
      }
      if (now % 100 != 0) continue;
      for (auto& change : members.look(at(now)))
        changes.push_back(change);
    }
    return changes;
  }
  Membership members{"exact-f32", "1.0"};
};

TEST_F(MembershipTest, ANodeThatBeatsStaysAlive) {
  ASSERT_TRUE(members.join(node("node/a"), at(0)));
  EXPECT_TRUE(pass(0, 60'000, {"node/a"}).empty());
}

// Beats that wait behind 30 s of bulk data on a slow link.
TEST_F(MembershipTest, BytesStandInForBeatsForAMinute) {
  ASSERT_TRUE(members.join(node("node/a"), at(0)));
  std::vector<Membership::Change> changes;
  std::int64_t last_byte = 0;
  const auto traffic = [&](const std::string& name) -> std::optional<core::TimePoint> {
    if (name == "node/a") return at(last_byte);
    return std::nullopt;
  };
  for (std::int64_t now = 100; now <= 70'000; now += 100) {
    last_byte = now;
    for (auto& change : members.look(at(now), traffic))
      changes.push_back(change);
    if (now == 30'000) {
      EXPECT_TRUE(changes.empty());
      EXPECT_TRUE(members.beat(beat_of("node/a"), at(1'000)));  // sent long ago, arrives now
    }
  }
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].health, NodeHealth::kSuspect);
  EXPECT_EQ(changes[1].health, NodeHealth::kFrozen);
  EXPECT_DOUBLE_EQ(changes[1].silent_s, 2.0);
}

TEST_F(MembershipTest, OldBytesAreNoSignOfLife) {
  ASSERT_TRUE(members.join(node("node/a"), at(0)));
  const auto traffic = [](const std::string&) { return std::optional(at(500)); };
  for (std::int64_t now = 100; now < 1'500; now += 100)
    EXPECT_TRUE(members.look(at(now), traffic).empty()) << now;
  const auto changes = members.look(at(1'500), traffic);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_DOUBLE_EQ(changes[0].silent_s, 1.0);
}

TEST_F(MembershipTest, SilenceIsSuspectAfterOneSecondAndFrozenAfterTwo) {
  ASSERT_TRUE(members.join(node("node/a"), at(0)));
  ASSERT_TRUE(members.join(node("node/b"), at(0)));
  const auto changes = pass(0, 3'000, {"node/b"});
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].name, "node/a");
  EXPECT_EQ(changes[0].health, NodeHealth::kSuspect);
  EXPECT_DOUBLE_EQ(changes[0].silent_s, 1.0);
  EXPECT_EQ(changes[1].health, NodeHealth::kFrozen);
  EXPECT_DOUBLE_EQ(changes[1].silent_s, 2.0);
  // It was given up: a late sign of life does not bring it back.
  EXPECT_FALSE(members.beat(beat_of("node/a"), at(3'100)));
}

TEST_F(MembershipTest, ASuspectThatIsHeardAgainIsAlive) {
  ASSERT_TRUE(members.join(node("node/a"), at(0)));
  auto changes = pass(0, 1'500, {});
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_TRUE(members.beat(beat_of("node/a"), at(1'550)));
  changes = pass(1'600, 1'600, {});
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].health, NodeHealth::kAlive);
}

TEST_F(MembershipTest, TheCompanysOwnPauseIsNobodysSilence) {
  ASSERT_TRUE(members.join(node("node/a"), at(0)));
  EXPECT_TRUE(pass(0, 1'000, {"node/a"}).empty());
  // Nobody looks for an hour, nor hears anything.
  EXPECT_TRUE(members.look(at(3'601'000)).empty());
  EXPECT_TRUE(members.beat(beat_of("node/a"), at(3'601'050)));
  // The node's real silence counts from then on.
  const auto changes = pass(3'601'100, 3'604'000, {});
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[1].health, NodeHealth::kFrozen);
}

TEST_F(MembershipTest, RefusesANameThatIsTaken) {
  ASSERT_TRUE(members.join(node("node/a"), at(0)));
  const auto again = members.join(node("node/a"), at(1));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, core::ErrorCode::kInvalidArgument);
  members.remove("node/a");
  EXPECT_TRUE(members.join(node("node/a"), at(2)));
}

TEST_F(MembershipTest, RefusesOtherProgramsAndOtherArithmetic) {
  Join old = node("node/old");
  old.build = "0.9";
  const auto build = members.join(old, at(0));
  ASSERT_FALSE(build);
  EXPECT_EQ(build.error().code, core::ErrorCode::kUnsupported);
  EXPECT_NE(build.error().message.find("0.9"), std::string::npos);
  EXPECT_NE(build.error().message.find("1.0"), std::string::npos);
  Join other = node("node/other");
  other.arithmetic = "bf16-compute";
  const auto arithmetic = members.join(other, at(0));
  ASSERT_FALSE(arithmetic);
  EXPECT_NE(arithmetic.error().message.find("bf16-compute"), std::string::npos);
}

}  // namespace
}  // namespace troupe::actors::company
