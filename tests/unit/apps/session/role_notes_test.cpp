// What the user is told of the roles unasked, on reports and times given by hand.
#include "apps/session/role_notes.hpp"

#include "apps/session/limits.hpp"

#include <gtest/gtest.h>

namespace troupe::session {
namespace {

using Lines = std::vector<std::string>;

wire::RoleReport report(wire::Amounts amounts, std::string waits_for = "") {
  wire::RoleReport made;
  made.amounts = std::move(amounts);
  made.waits_for = std::move(waits_for);
  return made;
}

constexpr core::TimePoint kStart{std::chrono::hours(1)};

}  // namespace

TEST(RoleNotes, NoProgressIsToldOnceEachTimeWithWhoWaits) {
  RoleNotes notes(8, kStart);
  RoleReports roles = {{"policy/0", report({{"updates", 1}}, "data/0")},
                       {"status/0", report({}, "policy/0")}};
  EXPECT_EQ(notes.look(roles, kStart), Lines());
  EXPECT_EQ(notes.look(roles, kStart + limits::kNoProgress / 2), Lines());
  const Lines told = {"no progress for 60 s: policy/0 waits for data/0"};
  EXPECT_EQ(notes.look(roles, kStart + limits::kNoProgress), told);
  EXPECT_EQ(notes.look(roles, kStart + limits::kNoProgress * 3 / 2), Lines());
  EXPECT_EQ(notes.look(roles, kStart + limits::kNoProgress * 2), told);
  roles["policy/0"].amounts = {{"updates", 2}};
  EXPECT_EQ(notes.look(roles, kStart + limits::kNoProgress * 3), Lines());
  roles["policy/0"].waits_for.clear();
  EXPECT_EQ(notes.look(roles, kStart + limits::kNoProgress * 4),
            Lines{"no progress for 60 s: no role waits for another"});
}

TEST(RoleNotes, TheCostOfARewardIsToldOnce) {
  RoleNotes notes(64, kStart);
  const wire::Amounts costs = {{"workers", 1}, {"call_s", 0.5}, {"timed_calls", 4}};
  const RoleReports roles = {{"reward/0", report(costs)}, {"generator/0", report(costs)}};
  EXPECT_EQ(notes.look(roles, kStart),
            Lines{"reward/0: 64 groups x 0.5 s a call / 1 worker = 32 s an update (more "
                  "--reward.workers, or an async function, make it less)"});
  EXPECT_EQ(notes.look(roles, kStart), Lines());
  RoleNotes supervised(0, kStart);
  EXPECT_EQ(supervised.look(roles, kStart), Lines());
}

TEST(RoleNotes, ServersThatAreAwayAreToldAgainAfterAWhile) {
  RoleNotes notes(8, kStart);
  wire::Amounts amounts = {{"servers", 3}, {"servers_away", 1}, {"scored", 1}};
  const auto look = [&](core::Duration after) {
    amounts.back().second += 1;  // there is progress
    return notes.look({{"reward/0", report(amounts)}}, kStart + after);
  };
  const Lines told = {"reward/0: 1 of its 3 servers is away; the others answer for them"};
  EXPECT_EQ(look(core::Duration::zero()), told);
  EXPECT_EQ(look(limits::kNoProgress / 2), Lines());
  EXPECT_EQ(look(limits::kNoProgress), told);
  amounts[1].second = 0;
  EXPECT_EQ(look(limits::kNoProgress * 2), Lines());
}

}  // namespace troupe::session
